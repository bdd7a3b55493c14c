# The one entrance for people who work on this program on Windows: .\dev.ps1 help
# Each command first installs what is missing; a stamp in .venv makes that quick when nothing is.
# Written for Windows PowerShell 5.1 and later.
$ErrorActionPreference = 'Stop'

$Here = $PSScriptRoot
$Venv = Join-Path $Here '.venv'
$Scripts = Join-Path $Venv 'Scripts'
$Python = Join-Path $Scripts 'python.exe'
$Stamp = Join-Path $Venv '.dev-installed'
$Inputs = 'requirements.lock', 'pyproject.toml', 'dev.ps1' | ForEach-Object { Join-Path $Here $_ }

function Say([string]$Text) { [Console]::Error.WriteLine("dev: $Text") }

function Stop-WithWord([string]$Text) {
    Say $Text
    exit 1
}

function Test-Command([string]$Name) {
    return $null -ne (Get-Command $Name -CommandType Application -ErrorAction SilentlyContinue)
}

# A native program that writes to standard error must not end the script (5.1 takes it for an error).
function Invoke-Quiet([string]$Program, [string[]]$Arguments) {
    $before = $ErrorActionPreference
    $ErrorActionPreference = 'Continue'
    try {
        $output = & $Program @Arguments 2>&1
        $script:LastOutput = $output
        return ($LASTEXITCODE -eq 0)
    } catch {
        $script:LastOutput = $_
        return $false
    } finally {
        $ErrorActionPreference = $before
    }
}

function Test-Python([string]$Program, [string[]]$Before) {
    $question = 'import sys, ensurepip, venv; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))'
    return Invoke-Quiet $Program ($Before + @('-c', $question))
}

function Find-Python {
    # What the user has made active comes first; $env:PYTHON overrules.
    $candidates = @()
    if ($env:PYTHON) {
        $candidates += , @($env:PYTHON)
    } else {
        $candidates += , @('python')
        $candidates += , @('py', '-3.13')
        $candidates += , @('py', '-3.12')
        $candidates += , @('py', '-3.11')
    }
    foreach ($candidate in $candidates) {
        $program = $candidate[0]
        $before = @($candidate | Select-Object -Skip 1)
        if ((Test-Command $program) -and (Test-Python $program $before)) { return , $candidate }
    }
    return $null
}

function Install-Python {
    if ($env:PYTHON -or -not (Test-Command 'winget')) { return }
    Say 'Installing Python 3.13 with winget (nothing from 3.11 to 3.13 was found).'
    $null = Invoke-Quiet 'winget' @(
        'install', '--exact', '--id', 'Python.Python.3.13', '--scope', 'user', '--silent',
        '--accept-package-agreements', '--accept-source-agreements')
    # This window does not see the new PATH yet.
    $env:PATH = [Environment]::GetEnvironmentVariable('PATH', 'User') + ';' + $env:PATH
}

function New-Environment {
    if ((Test-Path $Python) -and (Test-Python $Python @())) { return }
    $found = Find-Python
    if ($null -eq $found) {
        Install-Python
        $found = Find-Python
    }
    if ($null -eq $found) {
        Stop-WithWord 'Python 3.11, 3.12 or 3.13 is needed and was not found; install it from python.org or the Store and run this again.'
    }
    Say 'Making .venv.'
    $before = @($found | Select-Object -Skip 1)
    if (-not (Invoke-Quiet $found[0] ($before + @('-m', 'venv', '--clear', $Venv)))) {
        Stop-WithFailure 'The environment .venv could not be made.'
    }
}

function Install-Packages {
    Say 'Installing the locked Python packages (some minutes the first time).'
    $lock = Join-Path $Here 'requirements.lock'
    $pip = @('-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '--no-input')
    if (-not (Invoke-Quiet $Python ($pip + @('--require-hashes', '-r', $lock)))) {
        Stop-WithFailure 'The Python packages could not be installed; is there a way to the package index?'
    }
    # The build backend stands in the lock: this step needs no network.
    if (-not (Invoke-Quiet $Python ($pip + @('--no-deps', '--no-build-isolation', '-e', $Here)))) {
        Stop-WithFailure 'The project itself could not be put into .venv.'
    }
}

function Stop-WithFailure([string]$Text) {
    $script:LastOutput | Select-Object -Last 15 | ForEach-Object { [Console]::Error.WriteLine("$_") }
    Stop-WithWord $Text
}

function Test-Browser {
    if ($env:OC_BROWSER) { return $true }
    $roots = $env:ProgramFiles, ${env:ProgramFiles(x86)}, $env:LOCALAPPDATA | Where-Object { $_ }
    foreach ($root in $roots) {
        foreach ($place in 'Google\Chrome\Application\chrome.exe', 'Microsoft\Edge\Application\msedge.exe', 'Chromium\Application\chrome.exe') {
            if (Test-Path (Join-Path $root $place)) { return $true }
        }
    }
    return $false
}

function Get-Fingerprint {
    $parts = $Inputs | ForEach-Object { (Get-FileHash -Algorithm SHA256 -Path $_).Hash }
    return (@($parts) + $Here) -join ' '
}

function Install-Everything {
    New-Environment
    Install-Packages
    Set-Content -Path $Stamp -Value (Get-Fingerprint) -Encoding UTF8
}

function Confirm-Installed {
    $known = if (Test-Path $Stamp) { (Get-Content -Path $Stamp -Raw -Encoding UTF8).Trim() } else { '' }
    if (-not (Test-Path $Python) -or $known -ne (Get-Fingerprint)) { Install-Everything }
    if (-not (Test-Browser)) {
        Say "No browser was found: install Edge, Chrome or Chromium, or set OC_BROWSER to the program's path."
    }
}

function Get-Workers {
    # Each may hold a Chromium: four are enough for any machine.
    return [Math]::Min([Environment]::ProcessorCount, 4)
}

function Invoke-Step([string]$Name, [string]$Program, [string[]]$Arguments) {
    Say "Checking $Name."
    & $Program @Arguments | Out-Host
    if ($LASTEXITCODE -ne 0) { $script:Failures += $Name }
}

function Invoke-Check {
    $script:Failures = @()
    Invoke-Step 'format' (Join-Path $Scripts 'ruff.exe') @('format', '--check', '.')
    Invoke-Step 'lint' (Join-Path $Scripts 'ruff.exe') @('check', '.')
    Invoke-Step 'types' (Join-Path $Scripts 'mypy.exe') @()
    Invoke-Step 'layers' (Join-Path $Scripts 'lint-imports.exe') @('--no-cache')
    Invoke-Step 'tests' $Python @('-m', 'pytest', '-q', '-n', "$(Get-Workers)", '--dist', 'loadfile', '--no-loadscope-reorder', '--max-worker-restart', '0')
    if ($script:Failures.Count) { Stop-WithWord "Not clean: $($script:Failures -join ', ')." }
    Say 'All clean: format, lint, types, layers, tests.'
}

function Show-Help {
    Write-Host @'
.\dev.ps1 run [options]     open the window
.\dev.ps1 test [options]    run the test suite (--thorough: its long tests, too); options go to pytest
.\dev.ps1 check             format, lint, types, layers and tests, as a change must pass them
.\dev.ps1 octask ...        the command line program
.\dev.ps1 bench NAME        one benchmark: a table, then one line of JSON
.\dev.ps1 hard [NAME...]   rigs that try to break the program; --short as test --thorough does
.\dev.ps1 package [--check] make the packages of this system in dist\, then start them
.\dev.ps1 shot [FILE|--tour] take the picture of the window that README shows, or those of docs/window.md
.\dev.ps1 setup             only install what is missing
Each command first installs what is missing: .venv, and the packages of requirements.lock.
$env:PYTHON chooses the Python.
'@
}

# No param() block: every word after the command belongs to the program, dashes and all.
$Command = if ($args.Count) { [string]$args[0] } else { 'help' }
$Rest = @($args | Select-Object -Skip 1)

if ($Command -in 'run', 'test', 'check', 'octask', 'bench', 'hard', 'shot', 'package') { Confirm-Installed }
if ($Command -in 'test', 'check', 'bench', 'hard', 'shot', 'package') { Push-Location $Here }
# Standard error of a program is no error of this script (5.1 thinks so).
$ErrorActionPreference = 'Continue'
try {
    switch ($Command) {
        'setup' {
            Install-Everything
            Say 'Set up.'
            $global:LASTEXITCODE = 0
        }
        'run' {
            # A program with a window: PowerShell would not wait for it by itself.
            $options = @{ FilePath = (Join-Path $Scripts 'openchrome-monitor.exe'); Wait = $true; PassThru = $true; NoNewWindow = $true }
            # Backslashes before a quote are doubled, also before the one at the end: C:\data\ stays whole.
            if ($Rest.Count) { $options.ArgumentList = $Rest | ForEach-Object { '"' + (($_ -replace '(\\*)"', '$1$1\"') -replace '(\\+)$', '$1$1') + '"' } }
            $global:LASTEXITCODE = (Start-Process @options).ExitCode
        }
        'test' {
            if ("$Rest" -in '', '--thorough') { $Rest += @('-n', "$(Get-Workers)", '--dist', 'loadfile', '--no-loadscope-reorder', '--max-worker-restart', '0') }
            & $Python -m pytest @Rest
        }
        'check' {
            Invoke-Check
            $global:LASTEXITCODE = 0
        }
        'octask' { & (Join-Path $Scripts 'octask.exe') @Rest }
        'bench' { & $Python -m tests.bench @Rest }
        'hard' { & $Python -m tests.hard @Rest }
        'package' { & $Python packaging/build.py @Rest }
        'shot' { & $Python -m tests.shot @Rest }
        { $_ -in 'help', '-h', '--help' } {
            Show-Help
            $global:LASTEXITCODE = 0
        }
        default {
            Show-Help
            Stop-WithWord "'$Command' is not a command."
        }
    }
} finally {
    if ($Command -in 'test', 'check', 'bench', 'hard', 'shot', 'package') { Pop-Location }
}
exit $LASTEXITCODE
