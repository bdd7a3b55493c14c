; Adds a folder to the Path of this user, and removes it again.
; A string of NSIS ends after NSIS_MAX_STRLEN characters, and a Path that went through one would be
; cut there. So the value stays in memory of its own, and is written only when all of it was read.

; Windows gives programs no Path beyond this from the registry on every version that we know of.
!define PATH_LIMIT 2047

; In: $R0 the folder, $R1 "add" or "remove". Out: $R2 "changed", "same", "long" or "failed".
!macro PathEntry UN
Function ${UN}ChangePath
  System::Store S
  StrCpy $R2 "failed"
  StrCpy $4 0
  System::Call 'advapi32::RegOpenKeyExW(p 0x80000001, w "Environment", i 0, i 0x2001B, *p .r1) i.r0'
  ${If} $0 <> 0
    Goto end
  ${EndIf}
  System::Call 'advapi32::RegQueryValueExW(p r1, w "Path", p 0, *i .r2, p 0, *i .r3) i.r0'
  ${If} $0 = 2 ; there is no such value
    StrCpy $2 2 ; REG_EXPAND_SZ
    StrCpy $3 0
  ${ElseIf} $0 <> 0
  ${OrIf} $2 < 1 ; neither REG_SZ nor REG_EXPAND_SZ
  ${OrIf} $2 > 2
    Goto close
  ${EndIf}
  ; Room for ";", the value, ";", the folder and the ends. The memory is zero.
  StrLen $8 $R0
  IntOp $9 $8 * 2
  IntOp $9 $9 + $3
  IntOp $9 $9 + 16
  System::Alloc $9
  Pop $4
  ${If} $4 P= 0
    Goto close
  ${EndIf}
  System::Call 'kernel32::lstrcpyW(p r4, w ";")'
  IntPtrOp $5 $4 + 2
  ${If} $3 > 0
    ; Fails when the value has grown since it was measured.
    System::Call 'advapi32::RegQueryValueExW(p r1, w "Path", p 0, p 0, p r5, *i r3) i.r0'
    ${If} $0 <> 0
      Goto close
    ${EndIf}
  ${EndIf}
  System::Call 'kernel32::lstrcatW(p r4, w ";")'
  StrCpy $7 ";$R0;"
  System::Call 'shlwapi::StrStrIW(p r4, w r7) p.r6'
  StrCpy $R2 "same"
  ${If} $R1 == "add"
    ${If} $6 P<> 0
      Goto close
    ${EndIf}
    System::Call 'kernel32::lstrcatW(p r4, w R0)'
    System::Call 'kernel32::lstrlenW(p r5) i.r9'
    IntOp $8 $8 + 1
    ${If} $9 = $8 ; the Path was empty: no separator before the folder
      IntPtrOp $5 $5 + 2
    ${EndIf}
    ${If} $9 > ${PATH_LIMIT}
      StrCpy $R2 "long"
      Goto close
    ${EndIf}
  ${Else}
    ${If} $6 P= 0
      Goto close
    ${EndIf}
    ; ";folder;rest;" becomes ";rest;", and then the last ";" goes.
    IntOp $9 $8 + 1
    IntOp $9 $9 * 2
    IntPtrOp $9 $6 + $9
    System::Call 'kernel32::lstrlenW(p r9) i.r0'
    IntOp $0 $0 + 1
    IntOp $0 $0 * 2
    System::Call 'kernel32::RtlMoveMemory(p r6, p r9, p r0)'
    System::Call 'kernel32::lstrlenW(p r4) i.r0'
    IntOp $0 $0 - 1
    IntOp $0 $0 * 2
    IntPtrOp $9 $4 + $0
    System::Call '*$9(&i2 0)'
  ${EndIf}
  System::Call 'kernel32::lstrlenW(p r5) i.r9'
  ${If} $9 = 0
    System::Call 'advapi32::RegDeleteValueW(p r1, w "Path") i.r0'
  ${Else}
    IntOp $9 $9 + 1
    IntOp $9 $9 * 2
    System::Call 'advapi32::RegSetValueExW(p r1, w "Path", i 0, i r2, p r5, i r9) i.r0'
  ${EndIf}
  ${If} $0 = 0
    StrCpy $R2 "changed"
  ${Else}
    StrCpy $R2 "failed"
  ${EndIf}
  close:
  System::Call 'advapi32::RegCloseKey(p r1)'
  end:
  ${If} $4 P<> 0
    System::Free $4
  ${EndIf}
  ${If} $R2 == "changed"
    ; New windows of Explorer and of terminals see the change without a new logon.
    SendMessage ${HWND_BROADCAST} ${WM_SETTINGCHANGE} 0 "STR:Environment" /TIMEOUT=5000
  ${EndIf}
  Push $R2
  System::Store L
  Pop $R2
FunctionEnd
!macroend
