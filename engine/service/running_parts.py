"""Parts of an engine that run, change or export tasks: the browser, agents, requests, schedules.

`engine.service.engine` imports this module on first use, since it imports every kind and the
browser's session, which a program that only reads the ledger does not need.
"""

from __future__ import annotations

import asyncio
import logging

from engine.agents.tool_calls import Agents
from engine.browser.chromium.browser_session import BrowserSession
from engine.execution.executor import Executor
from engine.export.exports import Exports
from engine.kinds.context import Clock
from engine.kinds.registry import import_libraries
from engine.kinds.spec import Tools
from engine.model.errors import EngineError
from engine.results.file_reader import TaskFileReader
from engine.schedules.schedule_store import ScheduleStore
from engine.service.commands import TaskCommands
from engine.service.contracts import ContractService
from engine.service.maintenance import LedgerContext, TaskChanges
from engine.service.profiles import Profiles
from engine.service.pruning import Retention
from engine.service.queries import TaskQueries
from engine.service.requests import TaskRequests
from engine.service.schedules import Schedules

log = logging.getLogger(__name__)


class RunningParts:
    """Parts for work on one ledger, built together and closed by `close`."""

    def __init__(
        self,
        context: LedgerContext,
        tasks: TaskQueries,
        contracts: ContractService,
        changes: TaskChanges,
        clock: Clock | None,
    ) -> None:
        root, router = context.settings.root, context.router
        settings = context.settings
        self._context, self._tasks = context, tasks
        self._clock = clock or Clock()
        self.browser = BrowserSession(settings.browser_path)
        self.agents = Agents(
            self.browser, allow_private=settings.allow_private, proxy=settings.proxy
        )
        self.tools = Tools(settings, self.browser, self.agents.sessions.living)
        self.reading = TaskFileReader(root, router)
        self.exports = Exports(root, router)
        self.retention = Retention(root)
        self.commands = TaskCommands(context, tasks, contracts, changes)
        self.requests = TaskRequests(
            context, tasks, contracts, self.reading, self.tools, self._clock
        )
        self.schedules = Schedules(
            context, ScheduleStore(root), tasks, self.requests, self.tools, self._clock
        )
        self.profiles = Profiles(self.tools, self._clock)
        context.maintenance.settle_lost = self.commands.settle_lost

    def executor(self) -> Executor:
        """Return a new executor for the ledger as it is now open."""
        return Executor(self._context.ledger, self.tools, self._clock, self._tasks.nudge)

    async def warm(self) -> None:
        """Import the libraries of the bodies and start the browser, so that no task waits."""
        await asyncio.to_thread(import_libraries)
        try:
            await self.browser.warm()
        except EngineError as error:
            log.info("the browser is not warm: %s", error)

    async def close(self) -> None:
        """End the agents and close the browser."""
        await self.agents.close()
        await self.tools.instances.aclose()
        await self.browser.aclose()
