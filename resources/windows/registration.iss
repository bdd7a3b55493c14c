; Included by the installer's script: for this user alone, taken away when the program is.
; AppUserModelID of the shortcut is what Windows shows pop-ups under; gui/app.py sets the same.

[Icons]
Name: "{userprograms}\OpenChrome Monitor"; Filename: "{app}\openchrome-monitor.exe"; AppUserModelID: "io.github.openchrome.monitor"

[Registry]
Root: HKA; Subkey: "Software\Classes\openchrome-monitor"; ValueType: string; ValueName: ""; ValueData: "URL:OpenChrome Monitor task"; Flags: uninsdeletekey
Root: HKA; Subkey: "Software\Classes\openchrome-monitor"; ValueType: string; ValueName: "URL Protocol"; ValueData: ""
Root: HKA; Subkey: "Software\Classes\openchrome-monitor\DefaultIcon"; ValueType: string; ValueName: ""; ValueData: """{app}\openchrome-monitor.exe"",0"
Root: HKA; Subkey: "Software\Classes\openchrome-monitor\shell\open\command"; ValueType: string; ValueName: ""; ValueData: """{app}\openchrome-monitor.exe"" -- ""%1"""
Root: HKA; Subkey: "Software\Classes\Applications\openchrome-monitor.exe\SupportedTypes"; ValueType: string; ValueName: ".json"; ValueData: ""; Flags: uninsdeletekey
