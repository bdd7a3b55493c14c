#!/bin/sh
# Signs the bundle from the inside out, packs it into a disk image, and has Apple notarize both.
#
#   sign_and_notarize.sh "OpenChrome Monitor.app" output.dmg
#
# MACOS_IDENTITY   "Developer ID Application: …" in the keychain. Without it the signature is ad hoc:
#                  the program runs, but macOS asks its user to allow it.
# Notarizing needs one of these, and is left out without them:
#   NOTARY_PROFILE   a profile of `xcrun notarytool store-credentials`
#   NOTARY_KEY_FILE, NOTARY_KEY_ID, NOTARY_ISSUER   a key of App Store Connect (.p8), its id, its issuer
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
entitlements="$here/entitlements.plist"

say() { printf 'macos: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

[ $# -eq 2 ] || die "usage: sign_and_notarize.sh APP DMG"
app=${1%/} dmg=$2
[ -d "$app/Contents/MacOS" ] || die "$app is no bundle."
identity=${MACOS_IDENTITY:--}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# --- Signing -------------------------------------------------------------------------------------

is_mach_o() { # by the first four bytes: thin, 32 or 64 bits, either order, or universal
    magic=$(od -An -N4 -tx1 "$1" | tr -d ' \n')
    case $magic in
    feedface | feedfacf | cefaedfe | cffaedfe) return 0 ;;
    cafebabe) # a class of Java begins the same; it has a version of 45 or more at this place
        [ "$((0x$(od -An -j4 -N4 -tx1 "$1" | tr -d ' \n')))" -lt 40 ] ;;
    *) return 1 ;;
    esac
}

is_program() { # the file type in the header of the first architecture is MH_EXECUTE
    /usr/bin/file -b "$1" | grep -q 'Mach-O.* executable'
}

sign() { # options, then the path
    if [ "$identity" = - ]; then
        codesign --force --sign - "$@"
    else
        codesign --force --sign "$identity" --timestamp --options runtime "$@"
    fi
}

sign_file() {
    if is_program "$1"; then
        sign --entitlements "$entitlements" "$1"
    else
        sign "$1"
    fi
}

sign_all() {
    # The deepest path first: what a signature covers must be signed before it.
    find "$app/Contents" -type f | awk '{ print gsub("/", "/") " " $0 }' | sort -rn | cut -d' ' -f2- >"$work/files"
    count=0
    while IFS= read -r file; do
        if is_mach_o "$file"; then
            sign_file "$file"
            count=$((count + 1))
        fi
    done <"$work/files"
    [ "$count" -gt 0 ] || die "$app holds no program."
    find "$app/Contents" -type d -name '*.framework' | awk '{ print gsub("/", "/") " " $0 }' |
        sort -rn | cut -d' ' -f2- >"$work/frameworks"
    while IFS= read -r framework; do
        sign "$framework"
    done <"$work/frameworks"
    sign --entitlements "$entitlements" "$app"
    say "Signed $count programs and libraries as ${identity}."
}

verify() {
    codesign --verify --deep --strict --verbose=2 "$app"
    # Notarizing refuses a program without these; better to see it here.
    find "$app/Contents" -type f -path '*playwright/driver/node' >"$work/nodes"
    [ -s "$work/nodes" ] || die "playwright/driver/node is not in the bundle."
    while IFS= read -r node; do
        codesign --display --entitlements - --xml "$node" 2>/dev/null | grep -q allow-jit ||
            die "$node has no entitlements."
    done <"$work/nodes"
}

# --- Disk image ----------------------------------------------------------------------------------

make_image() {
    mkdir "$work/image"
    ditto "$app" "$work/image/$(basename "$app")"
    ln -s /Applications "$work/image/Applications"
    rm -f "$dmg"
    # HFS+ opens on every macOS that the program runs on, and mounts without a plug-in.
    hdiutil create -quiet -volname "OpenChrome Monitor" -srcfolder "$work/image" \
        -fs HFS+ -format UDZO -imagekey zlib-level=9 "$dmg"
    [ "$identity" = - ] || codesign --force --sign "$identity" --timestamp "$dmg"
    hdiutil verify -quiet "$dmg"
}

# --- Notarizing ----------------------------------------------------------------------------------

can_notarize() {
    [ "$identity" != - ] || return 1
    [ -n "${NOTARY_PROFILE:-}" ] ||
        { [ -n "${NOTARY_KEY_FILE:-}" ] && [ -n "${NOTARY_KEY_ID:-}" ] && [ -n "${NOTARY_ISSUER:-}" ]; }
}

notarytool() { # the command, then its options
    if [ -n "${NOTARY_PROFILE:-}" ]; then
        xcrun notarytool "$@" --keychain-profile "$NOTARY_PROFILE"
    else
        xcrun notarytool "$@" --key "$NOTARY_KEY_FILE" --key-id "$NOTARY_KEY_ID" --issuer "$NOTARY_ISSUER"
    fi
}

notarize() {
    # The exit code of `submit --wait` is 0 also for a refused file: the answer's status counts.
    notarytool submit "$1" --wait --timeout 60m --output-format plist >"$work/answer.plist"
    status=$(plutil -extract status raw -o - "$work/answer.plist")
    id=$(plutil -extract id raw -o - "$work/answer.plist")
    if [ "$status" != Accepted ]; then
        notarytool log "$id" >&2 || :
        die "Apple answered $status for $1."
    fi
    say "Apple accepted $1."
}

sign_all
verify
if can_notarize; then
    # The bundle first, so that it carries its ticket also after it was copied from the image.
    ditto -c -k --keepParent "$app" "$work/app.zip"
    notarize "$work/app.zip"
    xcrun stapler staple "$app"
    make_image
    notarize "$dmg"
    xcrun stapler staple "$dmg"
    xcrun stapler validate "$app"
    spctl --assess --type execute --verbose=2 "$app"
    spctl --assess --type open --context context:primary-signature --verbose=2 "$dmg"
else
    make_image
    say "Not notarized: there is no identity, or no access to the notary service."
fi
say "Wrote $dmg."
