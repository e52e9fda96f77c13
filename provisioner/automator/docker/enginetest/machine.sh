# The first process of a machine, root of its own user namespace only. Its arguments are
# the root file system and a directory for what the engine keeps; NAME, ADDRESS, GATEWAY,
# HOST_KEY and AUTHORIZED come in the environment, and ENGINE is the command that starts
# the engine. It says “ready” or what the kernel or the engine refused, and ends with its
# standard input, which ends with the test, however that ends; all else here goes with it.
root=$1 kept=$2
log=/var/log/engine.log
trap '[ -n "$up" ] || { echo "refused: $(tail -n 1 "$said" 2>/dev/null)" >&4; }' EXIT
said=$kept/said
exec 3<&0 4>&1 >"$said" 2>&1
set -e
read -r cable <&3 # is plugged in
mount --make-rprivate /
mount --bind "$root" "$root" # one of its own: those of the host are locked
cd "$root"
mount -t proc -o nosuid,nodev,noexec proc proc
mount -t sysfs -o ro,nosuid,nodev,noexec sysfs sys
mount -t tmpfs -o nosuid,mode=0755 dev dev
for name in null zero full random urandom tty; do
  : >"dev/$name"
  mount --bind "/dev/$name" "dev/$name"
done
mkdir dev/pts dev/shm
mount -t devpts -o newinstance,ptmxmode=0666,mode=620,gid=5 devpts dev/pts
mount -t tmpfs -o mode=1777 shm dev/shm
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
ln -s fd/0 dev/stdin
ln -s fd/1 dev/stdout
ln -s fd/2 dev/stderr
mount -t tmpfs -o mode=0755 run run
# Overlays of the engine cannot lie on the machine's own.
mkdir -p run/sshd var/lib/docker var/lib/containers root/.ssh
mount --bind "$kept/docker" var/lib/docker
mount --bind "$kept/containers" var/lib/containers
# No process may be in the root of the tree once there are controllers below it.
mount -t cgroup2 cgroup sys/fs/cgroup
mkdir sys/fs/cgroup/init
echo 0 >sys/fs/cgroup/init/cgroup.procs
pivot_root . mnt
cd /
exec >"$log" 2>&1
said=$log
umount -l /mnt
hostname "$NAME"
echo "$NAME" >/etc/hostname
echo "127.0.0.1 localhost $NAME" >/etc/hosts
ip link set lo up
ip address add "$ADDRESS" dev eth0
ip link set eth0 up
ip route add default via "$GATEWAY"
(umask 077; echo "$HOST_KEY" >/etc/ssh/ssh_host_ed25519_key; echo "$AUTHORIZED" >/root/.ssh/authorized_keys)
unset HOST_KEY AUTHORIZED
$ENGINE 3<&- 4>&- &
engine=$!
tries=0
until docker ps >/dev/null 2>&1; do
  kill -0 "$engine" 2>/dev/null || { wait "$engine"; exit 1; } # it has said why
  tries=$((tries + 1))
  [ "$tries" -lt 600 ] || { docker ps; exit 1; }
  sleep 0.1
done
/usr/sbin/sshd -D -E /var/log/sshd.log 3<&- 4>&- &
until grep -q 'Server listening' /var/log/sshd.log; do sleep 0.02; done
up=1
echo ready >&4
(read -r end <&3) &
wait $!
