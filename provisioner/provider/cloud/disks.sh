# Data disks of a machine, run as root by sh. Each line of standard input is
# "<mount> <options> <device>...": the empty ones of the devices become one file
# system there. The last line of standard error says what went wrong. Everything
# here may run again; a disk that holds anything is never touched.
fail() { echo "$1" >&2; exit 1; }

# blank: a whole block device without children, use or signature.
blank() {
  [ "$(lsblk -rno NAME "$1" 2>/dev/null </dev/null | wc -l)" = 1 ] || return 1
  grep -q "^$1 " /proc/mounts /proc/swaps && return 1
  blkid -p "$1" >/dev/null 2>&1 </dev/null
  [ $? = 2 ] || return 1
  ! command -v wipefs >/dev/null 2>&1 || [ -z "$(wipefs -n "$1" 2>&1 </dev/null)" ]
}

# join makes one device of several and prints it; nothing where it cannot.
join() {
  if ! command -v mdadm >/dev/null 2>&1; then
    { apt-get -y install mdadm || dnf -y install mdadm || yum -y install mdadm; } >/dev/null 2>&1 </dev/null
    command -v mdadm >/dev/null 2>&1 || return 1
  fi
  n=0
  while lsblk "/dev/md$n" >/dev/null 2>&1 </dev/null; do n=$((n + 1)); done
  mdadm --create "/dev/md$n" --run --level=0 --raid-devices=$# "$@" >/dev/null 2>&1 </dev/null || return 1
  conf=/etc/mdadm.conf
  [ -d /etc/mdadm ] && conf=/etc/mdadm/mdadm.conf
  mdadm --detail --scan "/dev/md$n" >>"$conf" 2>/dev/null </dev/null
  echo "/dev/md$n"
}

if [ -n "$LOOM_GROW" ] && command -v findmnt >/dev/null 2>&1; then
  root=$(findmnt -n -o SOURCE / </dev/null)
  kind=$(findmnt -n -o FSTYPE / </dev/null)
  case $root in
  /dev/*)
    number=$(cat "/sys/class/block/${root##*/}/partition" 2>/dev/null)
    parent=$(lsblk -no PKNAME "$root" 2>/dev/null </dev/null | head -n 1)
    if [ -n "$number" ] && [ -n "$parent" ] && command -v growpart >/dev/null 2>&1; then
      growpart "/dev/$parent" "$number" >/dev/null 2>&1 </dev/null # 1: nothing to grow
    fi
    case $kind in
    ext[234]) resize2fs "$root" >/dev/null 2>&1 </dev/null || echo "warning: the root file system could not be grown" ;;
    xfs) xfs_growfs / >/dev/null 2>&1 </dev/null || echo "warning: the root file system could not be grown" ;;
    esac
    ;;
  esac
fi

while read -r mount options devices; do
  [ -n "$mount" ] || continue
  label=loom-${mount##*/}
  grep -q " $mount " /proc/mounts && continue
  command -v blkid >/dev/null 2>&1 && command -v lsblk >/dev/null 2>&1 || { [ -z "$devices" ] || echo "warning: neither blkid nor lsblk here, so no disk is set up"; continue; }
  source=$(blkid -L "$label" </dev/null)
  if [ -z "$source" ]; then
    set --
    for device in $devices; do
      real=$(readlink -f "$device")
      [ "$(lsblk -dno TYPE "$real" 2>/dev/null </dev/null)" = disk ] || continue
      if blank "$real"; then set -- "$@" "$real"; else echo "$device holds something already; it is left alone"; fi
    done
    [ $# -gt 0 ] || continue
    source=$1
    if [ $# -gt 1 ]; then
      source=$(join "$@") || { source=$1; echo "warning: $# disks could not be joined; only $1 is used"; }
      # A failed join may have written its mark.
      [ "$source" != "$1" ] || blank "$1" || fail "the disks $* could not be joined"
    fi
    mkfs.ext4 -q -L "$label" "$source" >/dev/null 2>&1 </dev/null || fail "$source could not be formatted"
    echo "$source is formatted for $mount"
  fi
  uuid=$(blkid -s UUID -o value "$source" </dev/null)
  [ -n "$uuid" ] || fail "$source has no UUID after it was formatted"
  mkdir -p "$mount" || fail "$mount could not be made"
  grep -q "^UUID=$uuid " /etc/fstab 2>/dev/null || echo "UUID=$uuid $mount ext4 $options 0 2" >>/etc/fstab || fail "/etc/fstab could not be written"
  mount "$mount" </dev/null || fail "$source could not be mounted at $mount"
  echo "$source is mounted at $mount"
done
