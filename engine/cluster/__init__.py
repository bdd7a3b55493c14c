"""Crawls on a Dask cluster: the pages load on its workers, everything else stays in the engine.

Dask's libraries are an extra. The engine imports them for TLS only, and decodes nothing with them:
what a worker sends is MessagePack with records of this program (`wire`, `page_records`).
"""
