; Installer of Windows, for one user, without elevation. packages.py writes the lists of files and
; calls makensis with VERSION, NUMBERS, LISTS, OUTPUT, SIZE_KB, LONGEST, and ICON and SIGN if any.
;
; Silent: setup.exe /S [/ADDPATH] [/D=folder]   uninstall.exe /S [_?=folder waits for the end]
; Exit codes: 0 done, 1 cancelled, 2 a file could not be written or removed, 3 the program runs,
; 4 the earlier version could not be removed, 5 the folder cannot be used.
; The ledger and the settings are never touched.

!ifdef TARGET
  Target "${TARGET}" ; for tests with a Wine that runs 64-bit programs only
!else
  Unicode true
!endif
!include "MUI2.nsh"
!include "LogicLib.nsh"
!include "FileFunc.nsh"
!include "WinMessages.nsh"
!include "Win\COM.nsh"
!include "Win\Propkey.nsh"
!include "..\..\resources\windows\registration.nsh"
!include "path_entry.nsh"

!define NAME "OpenChrome Monitor"
!define PUBLISHER "The OpenChrome Monitor authors"
!define PROGRAM "openchrome-monitor.exe"
!define UNINSTALL "Software\Microsoft\Windows\CurrentVersion\Uninstall\${APP_ID}"
!define MAX_PATH 259

Name "${NAME}"
OutFile "${OUTPUT}"
InstallDir "$LOCALAPPDATA\Programs\${NAME}"
InstallDirRegKey HKCU "${UNINSTALL}" "InstallLocation"
RequestExecutionLevel user
SetCompressor /SOLID lzma
AllowSkipFiles off ; a file that cannot be written ends the installation
ManifestDPIAware true
ShowInstDetails nevershow
ShowUninstDetails nevershow
VIProductVersion "${NUMBERS}"
VIAddVersionKey "ProductName" "${NAME}"
VIAddVersionKey "ProductVersion" "${VERSION}"
VIAddVersionKey "FileVersion" "${VERSION}"
VIAddVersionKey "FileDescription" "${NAME} setup"
VIAddVersionKey "CompanyName" "${PUBLISHER}"
VIAddVersionKey "LegalCopyright" "${PUBLISHER}, MIT license"

!ifdef ICON
  !define MUI_ICON "${ICON}"
  !define MUI_UNICON "${ICON}"
!endif
!define MUI_ABORTWARNING
!define MUI_COMPONENTSPAGE_NODESC
!define MUI_FINISHPAGE_RUN "$INSTDIR\${PROGRAM}"
!define MUI_FINISHPAGE_NOREBOOTSUPPORT
!insertmacro MUI_PAGE_LICENSE "..\..\LICENSE"
!insertmacro MUI_PAGE_COMPONENTS
!define MUI_PAGE_CUSTOMFUNCTION_LEAVE CheckFolder
!insertmacro MUI_PAGE_DIRECTORY
!insertmacro MUI_PAGE_INSTFILES
!insertmacro MUI_PAGE_FINISH
!insertmacro MUI_UNPAGE_CONFIRM
!insertmacro MUI_UNPAGE_INSTFILES
!insertmacro MUI_LANGUAGE "English"
!insertmacro MUI_LANGUAGE "German"

LangString RUNNING ${LANG_ENGLISH} "${NAME} is running. Close it, then select Retry."
LangString RUNNING ${LANG_GERMAN} "${NAME} läuft noch. Beenden Sie das Programm und wählen Sie dann Wiederholen."
LangString FOREIGN ${LANG_ENGLISH} "This folder holds other files. Choose an empty folder or the folder of an earlier version."
LangString FOREIGN ${LANG_GERMAN} "Dieser Ordner enthält andere Dateien. Wählen Sie einen leeren Ordner oder den Ordner einer früheren Version."
LangString TOO_LONG ${LANG_ENGLISH} "The path of this folder is too long. Choose a folder with a shorter path."
LangString TOO_LONG ${LANG_GERMAN} "Der Pfad dieses Ordners ist zu lang. Wählen Sie einen Ordner mit kürzerem Pfad."
LangString NOT_REMOVED ${LANG_ENGLISH} "The earlier version could not be removed. Uninstall it in the settings of Windows, then start this setup again."
LangString NOT_REMOVED ${LANG_GERMAN} "Die frühere Version konnte nicht entfernt werden. Deinstallieren Sie sie in den Windows-Einstellungen und starten Sie dieses Setup erneut."
LangString LEFT ${LANG_ENGLISH} "Some files of ${NAME} are in use and were not removed. Close the programs that use them, then uninstall again."
LangString LEFT ${LANG_GERMAN} "Einige Dateien von ${NAME} werden benutzt und wurden nicht entfernt. Beenden Sie die Programme, die sie benutzen, und deinstallieren Sie erneut."
LangString PROGRAM_PART ${LANG_ENGLISH} "${NAME} (required)"
LangString PROGRAM_PART ${LANG_GERMAN} "${NAME} (erforderlich)"
LangString PATH_PART ${LANG_ENGLISH} "Add octask to the PATH of this user"
LangString PATH_PART ${LANG_GERMAN} "octask in den PATH dieses Benutzers aufnehmen"
LangString NO_PATH ${LANG_ENGLISH} "The PATH of this user was not changed: it cannot be read or would become too long. Start octask with its full path, or shorten the PATH and add this folder:"
LangString NO_PATH ${LANG_GERMAN} "Der PATH dieses Benutzers wurde nicht geändert: Er ist nicht lesbar oder würde zu lang. Starten Sie octask mit vollem Pfad, oder kürzen Sie den PATH und fügen Sie diesen Ordner hinzu:"

!insertmacro PathEntry ""
!insertmacro PathEntry "un."

; A running program cannot be written over. The user closes it; it is never ended from here, because
; tasks run in it. node.exe runs as long as a browser of the program does.
!macro WaitForEnd UN
Function ${UN}WaitForEnd ; $R0: folder
  again:
  Push "$R0\_internal\playwright\driver\node.exe"
  Push "$R0\octask.exe"
  Push "$R0\${PROGRAM}"
  StrCpy $1 0
  StrCpy $2 0
  ${Do}
    Pop $0
    ${If} ${FileExists} "$0"
      ClearErrors
      FileOpen $3 "$0" a
      ${If} ${Errors}
        StrCpy $2 1
      ${Else}
        FileClose $3
      ${EndIf}
    ${EndIf}
    IntOp $1 $1 + 1
  ${LoopUntil} $1 = 3
  ${If} $2 = 0
    Return
  ${EndIf}
  ${IfNot} ${Silent}
    MessageBox MB_RETRYCANCEL|MB_ICONEXCLAMATION "$(RUNNING)" IDRETRY again
  ${EndIf}
  SetErrorLevel 3
  Quit
FunctionEnd
!macroend
!insertmacro WaitForEnd ""
!insertmacro WaitForEnd "un."

; Files of others are never mixed with ours: the folder is new, empty, or of an earlier version.
Function CheckFolder
  StrLen $0 "$INSTDIR"
  IntOp $0 $0 + ${LONGEST}
  IntOp $0 $0 + 1
  ${If} $0 > ${MAX_PATH}
    StrCpy $1 "$(TOO_LONG)"
    Goto refuse
  ${EndIf}
  ReadRegStr $0 HKCU "${UNINSTALL}" "InstallLocation"
  ${If} $0 == $INSTDIR
    Return
  ${EndIf}
  ${If} ${FileExists} "$INSTDIR\uninstall.exe"
  ${AndIf} ${FileExists} "$INSTDIR\${PROGRAM}"
    Return
  ${EndIf}
  ${DirState} "$INSTDIR" $0
  ${If} $0 <> 1
    Return
  ${EndIf}
  StrCpy $1 "$(FOREIGN)"
  refuse:
  ${If} ${Silent}
    SetErrorLevel 5
    Quit
  ${EndIf}
  MessageBox MB_OK|MB_ICONEXCLAMATION "$1"
  Abort ; the page of the folder stays
FunctionEnd

; Removes an earlier version in the folder $R0 with that version's own list of files.
Function RemoveEarlier
  ${IfNot} ${FileExists} "$R0\uninstall.exe"
    Return
  ${EndIf}
  Call WaitForEnd
  ExecWait '"$R0\uninstall.exe" /S _?=$R0' $0
  ${If} $0 <> 0
    ${IfNot} ${Silent}
      MessageBox MB_OK|MB_ICONEXCLAMATION "$(NOT_REMOVED)"
    ${EndIf}
    SetErrorLevel 4
    Quit
  ${EndIf}
  Delete "$R0\uninstall.exe"
  RMDir "$R0"
FunctionEnd

Section "$(PROGRAM_PART)" SectionProgram
  SectionIn RO
  SetShellVarContext current
  ${If} ${Silent}
    Call CheckFolder
  ${EndIf}
  ReadRegStr $R0 HKCU "${UNINSTALL}" "InstallLocation"
  ${If} $R0 != ""
  ${AndIf} $R0 != $INSTDIR
    Call RemoveEarlier
  ${EndIf}
  StrCpy $R0 $INSTDIR
  Call WaitForEnd
  Call RemoveEarlier
  ; First of all, so that a broken installation can be removed.
  SetOutPath "$INSTDIR"
  WriteUninstaller "$INSTDIR\uninstall.exe"
  WriteRegStr HKCU "${UNINSTALL}" "DisplayName" "${NAME}"
  WriteRegStr HKCU "${UNINSTALL}" "DisplayVersion" "${VERSION}"
  WriteRegStr HKCU "${UNINSTALL}" "DisplayIcon" "$INSTDIR\${PROGRAM}"
  WriteRegStr HKCU "${UNINSTALL}" "Publisher" "${PUBLISHER}"
  WriteRegStr HKCU "${UNINSTALL}" "InstallLocation" "$INSTDIR"
  WriteRegStr HKCU "${UNINSTALL}" "UninstallString" '"$INSTDIR\uninstall.exe"'
  WriteRegStr HKCU "${UNINSTALL}" "QuietUninstallString" '"$INSTDIR\uninstall.exe" /S'
  WriteRegDWORD HKCU "${UNINSTALL}" "EstimatedSize" ${SIZE_KB}
  WriteRegDWORD HKCU "${UNINSTALL}" "NoModify" 1
  WriteRegDWORD HKCU "${UNINSTALL}" "NoRepair" 1
  !include "${LISTS}\install.nsh"
  SetOutPath "$INSTDIR"
  CreateShortcut "$SMPROGRAMS\${NAME}.lnk" "$INSTDIR\${PROGRAM}"
  Call SetShortcutId
  !insertmacro Register
SectionEnd

Section /o "$(PATH_PART)" SectionPath
  StrCpy $R0 $INSTDIR
  StrCpy $R1 "add"
  Call ChangePath
  ${If} $R2 == "changed"
    ; Only an entry that came from here is removed with the program.
    WriteRegDWORD HKCU "${UNINSTALL}" "PathEntry" 1
  ${ElseIf} $R2 != "same"
  ${AndIfNot} ${Silent}
    MessageBox MB_OK|MB_ICONINFORMATION "$(NO_PATH)$\r$\n$INSTDIR"
  ${EndIf}
SectionEnd

Function .onInit
  ; An update keeps the choice of the earlier version.
  ReadRegDWORD $0 HKCU "${UNINSTALL}" "PathEntry"
  ${GetParameters} $1
  ClearErrors
  ${GetOptions} $1 "/ADDPATH" $2
  ${IfNot} ${Errors}
  ${OrIf} $0 = 1
    SectionSetFlags ${SectionPath} ${SF_SELECTED}
  ${EndIf}
FunctionEnd

; Sets the AppUserModelID of the shortcut. Without it Windows shows pop-ups without name and icon.
Function SetShortcutId
  System::Store S
  !insertmacro ComHlpr_CreateInProcInstance ${CLSID_ShellLink} ${IID_IShellLink} r0 ""
  ${If} $0 P<> 0
    ${IUnknown::QueryInterface} $0 '("${IID_IPersistFile}",.r1)'
    ${If} $1 P<> 0
      ${IPersistFile::Load} $1 '("$SMPROGRAMS\${NAME}.lnk",2)' ; to read and write
      ${IUnknown::QueryInterface} $0 '("${IID_IPropertyStore}",.r2)'
      ${If} $2 P<> 0
        System::Call 'oleaut32::SysAllocString(w "${APP_ID}")p.r3'
        System::Call '*${SYSSTRUCT_PROPERTYKEY}(${PKEY_AppUserModel_ID})p.r4'
        System::Call '*${SYSSTRUCT_PROPVARIANT}(${VT_BSTR},,p r3)p.r5'
        ${IPropertyStore::SetValue} $2 '(r4,r5)'
        ${IPropertyStore::Commit} $2 ""
        System::Call 'ole32::PropVariantClear(p r5)'
        System::Free $4
        System::Free $5
        ${IUnknown::Release} $2 ""
      ${EndIf}
      ${IPersistFile::Save} $1 '("$SMPROGRAMS\${NAME}.lnk",1)'
      ${IUnknown::Release} $1 ""
    ${EndIf}
    ${IUnknown::Release} $0 ""
  ${EndIf}
  System::Store L
FunctionEnd

Section "Uninstall"
  SetShellVarContext current
  StrCpy $R0 $INSTDIR
  Call un.WaitForEnd
  ReadRegDWORD $0 HKCU "${UNINSTALL}" "PathEntry"
  ${If} $0 = 1
    StrCpy $R1 "remove"
    Call un.ChangePath
    DeleteRegValue HKCU "${UNINSTALL}" "PathEntry"
  ${EndIf}
  ; Exactly the files that were installed: a folder that holds anything else stays.
  ClearErrors
  !include "${LISTS}\uninstall.nsh"
  ${If} ${FileExists} "$INSTDIR\${PROGRAM}"
  ${OrIf} ${FileExists} "$INSTDIR\octask.exe"
  ${OrIf} ${FileExists} "$INSTDIR\_internal\playwright\driver\node.exe"
    ; The entry stays, so that the rest can be removed later.
    ${IfNot} ${Silent}
      MessageBox MB_OK|MB_ICONEXCLAMATION "$(LEFT)"
    ${EndIf}
    SetErrorLevel 2
    Quit
  ${EndIf}
  Delete "$SMPROGRAMS\${NAME}.lnk"
  !insertmacro Unregister
  DeleteRegKey HKCU "${UNINSTALL}"
  Delete "$INSTDIR\uninstall.exe"
  SetOutPath "$TEMP"
  RMDir "$INSTDIR"
SectionEnd

!ifdef SIGN
  !finalize '${SIGN} "%1"' = 0
  !uninstfinalize '${SIGN} "%1"' = 0
!endif
