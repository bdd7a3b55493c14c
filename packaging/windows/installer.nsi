; Installer of Windows, for one user, without elevation. packages.py writes the lists of files and
; calls: makensis -DVERSION=… -DPAYLOAD=folder -DLISTS=folder -DOUTPUT=file.exe -DICON=file.ico
; Silent: setup.exe /S [/D=folder], uninstall.exe /S. The ledger and the settings are never touched.

Target amd64-unicode
!include "MUI2.nsh"
!include "LogicLib.nsh"
!include "FileFunc.nsh"
!include "Win\COM.nsh"
!include "Win\Propkey.nsh"
!include "..\..\resources\windows\registration.nsh"

!define NAME "OpenChrome Monitor"
!define UNINSTALL "Software\Microsoft\Windows\CurrentVersion\Uninstall\${APP_ID}"

Name "${NAME}"
OutFile "${OUTPUT}"
InstallDir "$LOCALAPPDATA\Programs\${NAME}"
InstallDirRegKey HKCU "${UNINSTALL}" "InstallLocation"
RequestExecutionLevel user
SetCompressor /SOLID lzma
ManifestDPIAware true
ShowInstDetails nevershow
ShowUninstDetails nevershow
VIProductVersion "${VERSION}.0"
VIAddVersionKey "ProductName" "${NAME}"
VIAddVersionKey "ProductVersion" "${VERSION}"
VIAddVersionKey "FileVersion" "${VERSION}"
VIAddVersionKey "FileDescription" "${NAME} setup"
VIAddVersionKey "LegalCopyright" "The OpenChrome Monitor authors, MIT license"

!ifdef ICON
  !define MUI_ICON "${ICON}"
  !define MUI_UNICON "${ICON}"
!endif
!define MUI_ABORTWARNING
!define MUI_FINISHPAGE_RUN "$INSTDIR\openchrome-monitor.exe"
!define MUI_FINISHPAGE_NOREBOOTSUPPORT
!insertmacro MUI_PAGE_LICENSE "..\..\LICENSE"
!define MUI_PAGE_CUSTOMFUNCTION_LEAVE CheckFolder
!insertmacro MUI_PAGE_DIRECTORY
!insertmacro MUI_PAGE_INSTFILES
!insertmacro MUI_PAGE_FINISH
!insertmacro MUI_UNPAGE_CONFIRM
!insertmacro MUI_UNPAGE_INSTFILES
!insertmacro MUI_LANGUAGE "English"
!insertmacro MUI_LANGUAGE "German"

LangString RUNNING ${LANG_ENGLISH} "${NAME} is running. Close it, then press Retry."
LangString RUNNING ${LANG_GERMAN} "${NAME} läuft noch. Beenden Sie das Programm und klicken Sie dann auf Wiederholen."
LangString FOREIGN ${LANG_ENGLISH} "This folder holds other files. Choose an empty folder, or the one of an earlier version."
LangString FOREIGN ${LANG_GERMAN} "Dieser Ordner enthält andere Dateien. Wählen Sie einen leeren Ordner oder den einer früheren Version."

; A running program cannot be written over. It is asked for, and never ended from here: tasks run in it.
!macro WaitForEnd UN
Function ${UN}WaitForEnd
  again:
  IfFileExists "$INSTDIR\openchrome-monitor.exe" 0 next
  ClearErrors
  FileOpen $0 "$INSTDIR\openchrome-monitor.exe" a
  IfErrors busy
  FileClose $0
  next:
  IfFileExists "$INSTDIR\octask.exe" 0 done
  ClearErrors
  FileOpen $0 "$INSTDIR\octask.exe" a
  IfErrors busy
  FileClose $0
  done:
  Return
  busy:
  IfSilent 0 ask
  SetErrorLevel 3
  Quit
  ask:
  MessageBox MB_RETRYCANCEL|MB_ICONEXCLAMATION "$(RUNNING)" IDRETRY again
  SetErrorLevel 1
  Quit
FunctionEnd
!macroend
!insertmacro WaitForEnd ""
!insertmacro WaitForEnd "un."

; Files of others are never mixed with ours: the folder is empty, new, or has an earlier version.
Function CheckFolder
  IfFileExists "$INSTDIR\uninstall.exe" good
  ${DirState} "$INSTDIR" $0
  IntCmp $0 1 0 good good
  IfSilent 0 tell
  SetErrorLevel 5
  Quit
  tell:
  MessageBox MB_OK|MB_ICONEXCLAMATION "$(FOREIGN)"
  Abort
  good:
FunctionEnd

Section "install"
  SetShellVarContext current
  ${If} ${Silent}
    Call CheckFolder
  ${EndIf}
  Call WaitForEnd
  ; Files of an earlier version that this one lacks go with that version's own list.
  ${If} ${FileExists} "$INSTDIR\uninstall.exe"
    ExecWait '"$INSTDIR\uninstall.exe" /S _?=$INSTDIR' $0
    ${If} $0 <> 0
      SetErrorLevel 4
      Abort
    ${EndIf}
  ${EndIf}
  !include "${LISTS}\install.nsh"
  SetOutPath "$INSTDIR"
  WriteUninstaller "$INSTDIR\uninstall.exe"
  CreateShortcut "$SMPROGRAMS\${NAME}.lnk" "$INSTDIR\openchrome-monitor.exe"
  Call NameTheShortcut
  !insertmacro Register
  WriteRegStr HKCU "${UNINSTALL}" "DisplayName" "${NAME}"
  WriteRegStr HKCU "${UNINSTALL}" "DisplayVersion" "${VERSION}"
  WriteRegStr HKCU "${UNINSTALL}" "DisplayIcon" "$INSTDIR\openchrome-monitor.exe"
  WriteRegStr HKCU "${UNINSTALL}" "Publisher" "The OpenChrome Monitor authors"
  WriteRegStr HKCU "${UNINSTALL}" "InstallLocation" "$INSTDIR"
  WriteRegStr HKCU "${UNINSTALL}" "UninstallString" '"$INSTDIR\uninstall.exe"'
  WriteRegStr HKCU "${UNINSTALL}" "QuietUninstallString" '"$INSTDIR\uninstall.exe" /S'
  WriteRegDWORD HKCU "${UNINSTALL}" "EstimatedSize" ${SIZE_KB}
  WriteRegDWORD HKCU "${UNINSTALL}" "NoModify" 1
  WriteRegDWORD HKCU "${UNINSTALL}" "NoRepair" 1
SectionEnd

; Sets the AppUserModelID of the shortcut. Without it Windows shows pop-ups without name and sign.
Function NameTheShortcut
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
  Call un.WaitForEnd
  ; Exactly the files that were installed: a folder that holds anything else stays.
  !include "${LISTS}\uninstall.nsh"
  Delete "$INSTDIR\uninstall.exe"
  SetOutPath "$TEMP"
  RMDir "$INSTDIR"
  Delete "$SMPROGRAMS\${NAME}.lnk"
  !insertmacro Unregister
  DeleteRegKey HKCU "${UNINSTALL}"
SectionEnd

!ifdef SIGN
  !finalize '${SIGN} "%1"'
  !uninstfinalize '${SIGN} "%1"'
!endif
