; Included by packaging/windows/installer.nsi: for this user alone, taken away with the program.
; AppUserModelID of the shortcut is what Windows shows pop-ups under; gui/app.py sets the same.

!define APP_ID "io.github.openchrome.monitor"
!define SCHEME "openchrome-monitor"
!define CLASSES "Software\Classes"

!macro Register
  WriteRegStr HKCU "${CLASSES}\${SCHEME}" "" "URL:OpenChrome Monitor task"
  WriteRegStr HKCU "${CLASSES}\${SCHEME}" "URL Protocol" ""
  WriteRegStr HKCU "${CLASSES}\${SCHEME}\DefaultIcon" "" '"$INSTDIR\openchrome-monitor.exe",0'
  WriteRegStr HKCU "${CLASSES}\${SCHEME}\shell\open\command" "" '"$INSTDIR\openchrome-monitor.exe" -- "%1"'
  WriteRegStr HKCU "${CLASSES}\Applications\openchrome-monitor.exe\SupportedTypes" ".json" ""
!macroend

!macro Unregister
  DeleteRegKey HKCU "${CLASSES}\${SCHEME}"
  DeleteRegKey HKCU "${CLASSES}\Applications\openchrome-monitor.exe"
!macroend
