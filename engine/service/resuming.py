"""Which crawls can be resumed: a new task keeps their pages and goes on where they stopped.

Decisions where the contract is silent. A task is resumed once: what its successor did not finish
is resumed from there. A crawl that ended by itself is resumed only with a higher limit of pages.
A crawl of another ledger is resumed in that ledger.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from engine.model.errors import EngineError
from engine.model.kind_traits import traits_of
from engine.model.ledger_ids import ledger_label, plain_id
from engine.model.records import Status, TaskId, TaskRecord, TaskView
from engine.service.rerun import CannotRepeat, asked


class CannotResume(EngineError):
    """The crawl cannot go on as a new task."""

    code = "cannot_resume"
    title = "The task cannot be resumed"
    sentence = "Task {task_id} cannot be resumed: {reason}."
    advice_text = "`octask rerun {task_id}` starts it from the beginning."


class NothingToResume(CannotResume):
    """The crawl ended by itself."""

    code = "nothing_to_resume"
    title = "There is nothing to resume"
    sentence = "Task {task_id} ended by itself; it did not stop before its end."
    advice_text = "Give a higher limit of pages (--max-pages) to load more, or re-run the task."


class ResumedAlready(CannotResume):
    """Another task continues this one."""

    code = "resumed_already"
    title = "The task was resumed before"
    sentence = "Task {task_id} was resumed before, as {by}."
    advice_text = "Look at task {by}; if it stopped, resume that one."


class ResumeFate(StrEnum):
    """What a request to resume does to a task; only `RESUMES` starts anything."""

    RESUMES = "resumes"
    WHOLE = "whole"  # ended by itself
    RESUMED = "resumed"  # another task continues it
    LIVE = "live"  # has not ended
    ASKS = "asks"  # its request is not stored whole
    ELSEWHERE = "elsewhere"  # in another ledger
    OTHER = "other"  # no crawl, or of another program
    LOST = "lost"  # unreadable


SKIPPED: Final = tuple(fate for fate in ResumeFate if fate is not ResumeFate.RESUMES)
_REASONS: Final[Mapping[ResumeFate, str]] = {
    ResumeFate.ELSEWHERE: "it is in another ledger; open that one to resume it there",
    ResumeFate.OTHER: "only crawls can be resumed",
    ResumeFate.LOST: "its record cannot be read",
}


@dataclass(frozen=True, slots=True)
class ResumePlan:
    """Tasks grouped by what a request to resume them does."""

    fates: Mapping[ResumeFate, tuple[TaskView, ...]]

    def of(self, *fates: ResumeFate) -> tuple[TaskView, ...]:
        return tuple(view for fate in fates for view in self.fates.get(fate, ()))

    @property
    def ids(self) -> tuple[TaskId, ...]:
        """The tasks that would be resumed, in the given order."""
        return tuple(view.task_id for view in self.of(ResumeFate.RESUMES))


def successors(views: Iterable[TaskView]) -> dict[str, TaskId]:
    """Map each task that was resumed to the task that continues it."""
    return {
        ours.parent_task_id: view.task_id
        for view in views
        if type(view.entry) is TaskRecord and (ours := view.entry.engine) is not None
        if ours.resumes and ours.parent_task_id
    }


def resume_plan(
    views: Iterable[TaskView],
    resumed: Mapping[str, TaskId],
    *,
    more: bool = False,
    remembers: Callable[[str], bool] = lambda _: False,
) -> ResumePlan:
    """Group `views`; nothing is started.

    Args:
        resumed: what `successors` found.
        more: the limit of pages is raised, so a crawl that ended by itself is resumed too.
        remembers: whether this process has the whole request of a task, with its secrets.
    """
    groups: dict[ResumeFate, list[TaskView]] = {}
    for view in views:
        fate = resume_fate(view, resumed, more=more, remembers=remembers)
        groups.setdefault(fate, []).append(view)
    return ResumePlan({fate: tuple(found) for fate, found in groups.items()})


def resume_fate(
    view: TaskView,
    resumed: Mapping[str, TaskId],
    *,
    more: bool = False,
    remembers: Callable[[str], bool] = lambda _: False,
) -> ResumeFate:
    """Return what a request to resume does to this task; see `resume_plan`."""
    record = view.entry
    if not isinstance(record, TaskRecord):
        return ResumeFate.LOST
    if not traits_of(record.kind).crawls:
        return ResumeFate.OTHER
    if not record.is_terminal:
        return ResumeFate.LIVE
    if ledger_label(view.task_id):
        return ResumeFate.ELSEWHERE
    if view.task_id in resumed:
        return ResumeFate.RESUMED
    if not (more or is_cut_short(record)):
        return ResumeFate.WHOLE
    if not remembers(view.task_id):
        try:
            asked(record)
        except CannotRepeat:
            return ResumeFate.ASKS
    return ResumeFate.RESUMES


def is_cut_short(record: TaskRecord) -> bool:
    """Return whether an ended task did not end by itself: it failed, was cancelled or forced."""
    forced = record.engine is not None and record.engine.forced_at is not None
    return record.status != Status.COMPLETED or forced


def refusal(view: TaskView, fate: ResumeFate, resumed: Mapping[str, TaskId]) -> EngineError:
    """Return the error of a task that is not resumed; those of `LIVE` and `ASKS` are others."""
    task_id = plain_id(view.task_id)
    if fate is ResumeFate.WHOLE:
        return NothingToResume(task_id=task_id)
    if fate is ResumeFate.RESUMED:
        return ResumedAlready(task_id=task_id, by=resumed[view.task_id])
    return CannotResume(task_id=task_id, reason=_REASONS[fate])
