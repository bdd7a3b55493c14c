"""Write the list of components (CycloneDX 1.6, JSON) of the packages.

python sbom.py VERSION OUTPUT
"""

from __future__ import annotations

import sys
import uuid
from datetime import UTC, datetime
from os import environ
from pathlib import Path

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

from engine.doctor.third_party_licenses import components


def main() -> None:
    version, output = sys.argv[1:]
    licenses = LicenseFactory()
    bom = Bom()
    own = Component(
        name="openchrome-monitor",
        version=version,
        type=ComponentType.APPLICATION,
        bom_ref="openchrome-monitor",
        licenses=[licenses.make_with_id("MIT")],
        purl=PackageURL("pypi", name="openchrome-monitor", version=version),
    )
    bom.metadata.component = own
    bom.metadata.timestamp = datetime.fromtimestamp(int(environ["SOURCE_DATE_EPOCH"]), UTC)
    bom.serial_number = uuid.uuid5(uuid.NAMESPACE_URL, f"{own.purl}#{environ['OC_COMMIT']}")
    for found in components():
        part = Component(
            name=found.name,
            version=found.version or None,
            type=ComponentType.LIBRARY,
            bom_ref=found.name,
            licenses=[licenses.make_from_string(found.license)] if found.license else [],
            purl=PackageURL("pypi", name=found.name.lower(), version=found.version or None)
            if found.is_python
            else None,
        )
        bom.components.add(part)
        bom.register_dependency(own, [part])
    Path(output).write_text(JsonV1Dot6(bom).output_as_string(indent=1), "utf-8")


if __name__ == "__main__":
    main()
