"""Version resources of the programs of Windows, in the text form that PyInstaller reads."""

from __future__ import annotations

_FORM = """VSVersionInfo(
  ffi=FixedFileInfo(filevers={numbers}, prodvers={numbers}, mask=0x3F, flags=0x0, OS=0x40004,
    fileType=0x1, subtype=0x0, date=(0, 0)),
  kids=[
    StringFileInfo([StringTable("040904B0", [
      StringStruct("CompanyName", "The OpenChrome Monitor authors"),
      StringStruct("FileDescription", {description!r}),
      StringStruct("FileVersion", {version!r}),
      StringStruct("InternalName", {name!r}),
      StringStruct("LegalCopyright", "The OpenChrome Monitor authors, MIT license"),
      StringStruct("OriginalFilename", {file!r}),
      StringStruct("ProductName", "OpenChrome Monitor"),
      StringStruct("ProductVersion", {version!r})])]),
    VarFileInfo([VarStruct("Translation", [0x0409, 1200])])
  ]
)
"""


def version_info(version: str, name: str, description: str) -> str:
    """Return the resource of one program; `version` has up to four numbers."""
    found = [int(part) for part in version.split(".") if part.isdecimal()]
    numbers = tuple([*found, 0, 0, 0, 0][:4])
    return _FORM.format(
        numbers=numbers, version=version, name=name, description=description, file=f"{name}.exe"
    )
