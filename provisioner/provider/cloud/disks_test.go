package cloud

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"loom/app/loom"
	"loom/provisioner/provider"
	"loom/provisioner/remote/sshtest"
)

// lsblk of several versions: numbers as numbers or texts, flags as 0 or false.
const blocksNew = `{"blockdevices": [
 {"name":"/dev/loop0","type":"loop","size":4096000000,"ro":true,"rm":false,"fstype":"squashfs","mountpoint":"/snap/x","model":null},
 {"name":"/dev/nvme0n1","type":"disk","size":8589934592,"ro":false,"rm":false,"fstype":null,"mountpoint":null,"model":"Amazon Elastic Block Store",
  "children":[{"name":"/dev/nvme0n1p1","type":"part","size":8000000000,"ro":false,"rm":false,"fstype":"ext4","mountpoint":"/","model":null}]},
 {"name":"/dev/nvme2n1","type":"disk","size":75000000000,"ro":false,"rm":false,"fstype":null,"mountpoint":null,"model":"Amazon EC2 NVMe Instance Storage"},
 {"name":"/dev/nvme1n1","type":"disk","size":75000000000,"ro":false,"rm":false,"fstype":null,"mountpoint":null,"model":"Amazon EC2 NVMe Instance Storage"},
 {"name":"/dev/sdb","type":"disk","size":75000000000,"ro":false,"rm":false,"fstype":"linux_raid_member","mountpoint":null,"model":"x"},
 {"name":"/dev/sdc","type":"disk","size":75000000000,"ro":true,"rm":false,"fstype":null,"mountpoint":null,"model":"x"},
 {"name":"/dev/sdd","type":"disk","size":75000000000,"ro":false,"rm":true,"fstype":null,"mountpoint":null,"model":"stick"},
 {"name":"/dev/sde","type":"disk","size":75000000000,"ro":false,"rm":false,"fstype":null,"mountpoint":"[SWAP]","model":"x"},
 {"name":"/dev/sdf","type":"disk","size":1000,"ro":false,"rm":false,"fstype":null,"mountpoint":null,"model":"x"},
 {"name":"/dev/sr0","type":"rom","size":75000000000,"ro":false,"rm":false,"fstype":null,"mountpoint":null,"model":"x"},
 {"name":"/dev/sd g","type":"disk","size":75000000000,"ro":false,"rm":false,"fstype":null,"mountpoint":null,"model":"x"}]}`

const blocksOld = `{"blockdevices": [{"name":"/dev/xvdb","type":"disk","size":"75000000000","ro":"0","rm":"0","fstype":null,"mountpoint":null,"model":null},
 {"name":"/dev/xvdc","type":"disk","size":"75000000000","ro":"1","rm":"0","fstype":null,"mountpoint":null}]}`

func TestUnusedDisks(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]string{blocksNew: "/dev/nvme1n1 /dev/nvme2n1", blocksOld: "/dev/xvdb", "": "", "lsblk: no": "", `{"blockdevices":[{}]}`: ""} {
		var got []string
		for _, b := range unused([]byte(answer)) {
			got = append(got, b.Path)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("unused are %v, not %s", got, want)
		}
	}
}

// stub writes down what it is called with, and answers from the state that the
// test laid out: <state>/dev/<name> holds what is on a disk, "" for nothing. It never
// reaches the tools of this host.
const stub = `#!/bin/sh
state=%STATE%
name=${0##*/}
last=; for a in "$@"; do last=$a; done
disk=$state/dev/${last##*/}
case $name in
lsblk)
  case $1 in
  -J) cat "$state/lsblk.json" ;;
  -dno) [ -f "$disk" ] && echo disk ;;
  -rno) [ -f "$disk" ] && { echo x; [ "$(cat "$disk")" = parts ] && echo x1; }; true ;;
  *) [ -f "$disk" ] ;;
  esac ;;
blkid)
  case $1 in
  -p) [ -s "$disk" ] && exit 0; exit 2 ;;
  -L) grep -lx "ext4 $2" "$state"/dev/* 2>/dev/null | sed 's|.*/|/dev/|' | head -n 1 ;;
  -s) [ -s "$disk" ] && echo "uuid-${last##*/}" ;;
  esac ;;
wipefs) [ -s "$disk" ] && [ "$(cat "$disk")" != parts ] && cat "$disk"; true ;;
readlink) echo "$last" | sed 's|/dev/by-id/google-|/dev/|' ;;
mdadm)
  echo "$name $*" >>"$state/done"
  case $1 in --create) [ -f "$state/noraid" ] && exit 1; : >"$state/dev/md0" ;; *) echo ARRAY ;; esac ;;
mkfs.ext4) echo "$name $*" >>"$state/done"; echo "ext4 $3" >"$disk" ;;
findmnt) case "$*" in *SOURCE*) echo /dev/xvda1 ;; *) echo ext4 ;; esac ;;
mkdir) case $last in /data*) ;; *) exec /bin/mkdir "$@" ;; esac ;;
*) echo "$name $*" >>"$state/done" ;;
esac
`

// tools are all programs of disks.sh that could touch this host.
var tools = []string{"lsblk", "blkid", "wipefs", "readlink", "mdadm", "mkfs.ext4", "mount", "mkdir", "findmnt", "growpart", "resize2fs", "xfs_growfs", "apt-get", "dnf", "yum"}

// arrange sets up disks on a machine with the given content and says what was done.
func arrangeDisks(t *testing.T, d Disks, content map[string]string, lsblk string, noRaid bool, times int) (done, log, fstab string) {
	t.Helper()
	state := t.TempDir()
	for _, dir := range []string{"bin", "dev"} {
		if err := os.Mkdir(filepath.Join(state, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write := func(name, text string, mode os.FileMode) {
		if err := os.WriteFile(filepath.Join(state, name), []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	for _, tool := range tools {
		write("bin/"+tool, strings.ReplaceAll(stub, "%STATE%", state), 0o755)
	}
	for disk, text := range content {
		write("dev/"+disk, text, 0o600)
	}
	write("lsblk.json", lsblk, 0o600)
	if noRaid {
		write("noraid", "", 0o600)
	}
	server := sshtest.Start(t, sshtest.Options{Isolated: true, Config: []string{"SetEnv PATH=" + state + "/bin:/usr/bin:/bin"}})
	sink := &lines{}
	s := Options{}.Begin(loom.PluginType{}, &loom.TaskSpec{}, sink, FromNetwork)
	spec := &loom.TaskSpec{Reach: loom.Anywhere(), PrivateKey: loom.NewSecret(server.Key.PEM), SSHUser: "root", Results: map[string]any{"ssh_port": server.Port}}
	for range times {
		message, err := s.arrange(provider.WithEnv(t.Context(), provider.Env{}), spec, loom.TaskResult{Addresses: map[string]string{loom.AccessV4: server.Address}}, d)
		if err != nil || message != "" {
			t.Fatalf("%q, %v\n%s", message, err, sink.text)
		}
	}
	doings, _ := os.ReadFile(filepath.Join(state, "done"))
	table, _ := os.ReadFile(filepath.Join(server.Dir, "etc", "fstab"))
	return string(doings), sink.text, string(table)
}

type lines struct{ text string }

// Log keeps a line.
func (l *lines) Log(_, text string) { l.text += text + "\n" }

// Fact keeps nothing.
func (*lines) Fact(map[string]any) error { return nil }

func every(Block) bool { return true }

func TestDisks(t *testing.T) {
	t.Parallel()
	two := strings.NewReplacer("/dev/nvme", "/dev/loomtest-nvme").Replace(blocksNew)
	one := `{"blockdevices": [{"name":"/dev/loomtest-b","type":"disk","size":"75000000000","ro":"0","rm":"0","fstype":null,"mountpoint":null,"model":null}]}`
	for name, c := range map[string]struct {
		disks   Disks
		content map[string]string
		lsblk   string
		noRaid  bool
		times   int
		want    []string
		lacks   []string
		fstab   string
	}{
		"one spare disk": {disks: Disks{Spare: every}, content: map[string]string{"loomtest-b": ""}, lsblk: one, times: 1,
			want: []string{"mkfs.ext4 -q -L loom-data /dev/loomtest-b\n", "mount /data\n"}, lacks: []string{"mdadm"}, fstab: "UUID=uuid-loomtest-b /data ext4 defaults,noatime,nofail 0 2\n"},
		"again": {disks: Disks{Spare: every}, content: map[string]string{"loomtest-b": "ext4 loom-data\n"}, lsblk: `{"blockdevices":[]}`, times: 2,
			want: []string{"mount /data\n"}, lacks: []string{"mkfs"}, fstab: "UUID=uuid-loomtest-b /data ext4 defaults,noatime,nofail 0 2\n"},
		"two spare disks": {disks: Disks{Spare: every}, content: map[string]string{"loomtest-nvme1n1": "", "loomtest-nvme2n1": ""}, lsblk: two, times: 1,
			want: []string{"mdadm --create /dev/md0 --run --level=0 --raid-devices=2 /dev/loomtest-nvme1n1 /dev/loomtest-nvme2n1\n", "mkfs.ext4 -q -L loom-data /dev/md0\n", "mount /data\n"}, fstab: "UUID=uuid-md0 /data "},
		"no RAID here": {disks: Disks{Spare: every}, content: map[string]string{"loomtest-nvme1n1": "", "loomtest-nvme2n1": ""}, lsblk: two, noRaid: true, times: 1,
			want: []string{"mkfs.ext4 -q -L loom-data /dev/loomtest-nvme1n1\n"}, fstab: "UUID=uuid-loomtest-nvme1n1 /data "},
		"signature that lsblk does not show": {disks: Disks{Spare: every}, content: map[string]string{"loomtest-b": "LUKS"}, lsblk: one, times: 1, lacks: []string{"mkfs", "mount", "mdadm"}},
		"partitions":                         {disks: Disks{Spare: every}, content: map[string]string{"loomtest-b": "parts"}, lsblk: one, times: 1, lacks: []string{"mkfs", "mount"}},
		"no spare disk":                      {disks: Disks{Spare: func(Block) bool { return false }}, content: map[string]string{"loomtest-b": ""}, lsblk: one, times: 1, lacks: []string{"mkfs", "mount"}},
		"named disks": {disks: Disks{Named: []NamedDisk{{Device: "/dev/by-id/google-loomtest-d1", Mount: "/data", Options: "discard,nofail"}, {Device: "/dev/by-id/google-loomtest-d2", Mount: "/data2"}, {Device: "/dev/loomtest-absent", Mount: "/data3"}}},
			content: map[string]string{"loomtest-d1": "", "loomtest-d2": ""}, times: 1, lacks: []string{"data3"},
			want: []string{"mkfs.ext4 -q -L loom-data /dev/loomtest-d1\n", "mkfs.ext4 -q -L loom-data2 /dev/loomtest-d2\n"}, fstab: "UUID=uuid-loomtest-d1 /data ext4 discard,nofail 0 2\nUUID=uuid-loomtest-d2 /data2 ext4 defaults,noatime,nofail 0 2\n"},
		"a named disk in use": {disks: Disks{Named: []NamedDisk{{Device: "/dev/loomtest-d1", Mount: "/data"}}}, content: map[string]string{"loomtest-d1": "xfs backup"}, times: 1, lacks: []string{"mkfs", "mount"}},
		"root":                {disks: Disks{Grow: true}, times: 1, want: []string{"resize2fs /dev/xvda1\n"}, lacks: []string{"xfs_growfs", "mkfs"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			done, log, fstab := arrangeDisks(t, c.disks, c.content, c.lsblk, c.noRaid, c.times)
			for _, want := range c.want {
				if !strings.Contains(done, want) {
					t.Errorf("lacks %q:\n%s%s", want, done, log)
				}
			}
			for _, not := range c.lacks {
				if strings.Contains(done, not) {
					t.Errorf("has %q:\n%s%s", not, done, log)
				}
			}
			if c.fstab != "" && strings.Count(fstab, c.fstab) != 1 {
				t.Errorf("fstab is\n%s", fstab)
			}
		})
	}
}

func TestNothingIsMadeAfterTheEnd(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := Options{}.Begin(loom.PluginType{}, &loom.TaskSpec{}, &lines{}, FromNetwork)
	called := false
	if err := s.Call(ctx, func(context.Context) error { called = true; return nil }); err == nil || called {
		t.Errorf("%v, called %t", err, called)
	}
}
