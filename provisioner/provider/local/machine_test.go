package local

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestMachineIsOne checks what a machine is: its own name, processes, files and
// users, and root of it nobody on the host.
func TestMachineIsOne(t *testing.T) {
	t.Parallel()
	b := setUpLocal(t)
	spec := b.spec("acme", 0)
	m := b.create(t, spec)
	if !m.Running {
		t.Fatal("the machine does not run")
	}
	if !b.filtered() { // else the checks at the end of each test would see nothing
		t.Fatal("the packet filter table of the instance is not found")
	}
	for command, want := range map[string]string{
		"hostname":                          "shop7-1000.example.net",
		"cat /etc/hostname":                 "shop7-1000.example.net",
		"id -u":                             "0",
		"cat /proc/1/comm":                  "sshd",
		"hostname -i":                       m.Address,
		"getent hosts shop7-1000":           fmt.Sprintf("%-15s shop7-1000.example.net shop7-1000", m.Address),
		"stat -c %u:%g /etc/passwd /bin/su": "0:0\n0:0",
		"stat -c %a /bin/su":                "4755",
		"findmnt -no OPTIONS /sys | cut -c-2; true":                       "",
		"ls /proc/1/fd | wc -l":                                           "",
		"echo x > /dev/null && head -c3 /dev/zero | wc -c":                "3",
		"stat -c %a /tmp /dev/shm":                                        "1777\n1777",
		"cat /proc/sys/net/ipv6/conf/eth0/disable_ipv6":                   "1",
		"ls /etc/ssh/ssh_host_* | xargs":                                  "/etc/ssh/ssh_host_ed25519_key",
		"ls /usr/sbin/policy-rc.d 2>&1 | grep -c No":                      "1",
		"ls /var/lib/apt/lists | grep -c Packages | awk '{print ($1>0)}'": "1",
	} {
		if got := b.must(t, m, command); want != "" && got != want {
			t.Errorf("%s: %q, want %q", command, got, want)
		}
	}
	// No process of the machine is root outside.
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", m.PID))
	record, stateErr := b.readState(m.ID)
	if stateErr != nil || record.FirstID < firstBlock*blockIDs {
		t.Fatalf("ids of the machine: %+v, %v", record, stateErr)
	}
	if err != nil || !strings.Contains(string(status), fmt.Sprintf("Uid:\t%[1]d\t%[1]d\t%[1]d\t%[1]d", record.FirstID)) || !strings.Contains(string(status), "Groups:") {
		t.Errorf("first process as the host sees it: %v\n%s", err, status)
	}
	// Nothing of this process goes along: files, environment, session.
	fds, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", m.PID))
	if err != nil || len(fds) < 4 {
		t.Errorf("open files of the first process: %v, %v", fds, err)
	}
	for _, fd := range fds {
		target, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/%s", m.PID, fd.Name()))
		if target != "/dev/null" && target != "/var/log/sshd.log" && !strings.HasPrefix(target, "socket:") {
			t.Errorf("the first process has %s open", target)
		}
	}
	environment, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", m.PID))
	if err != nil || strings.Contains(string(environment), "LOOM") || strings.Contains(string(environment), "GOROOT") {
		t.Errorf("environment of the first process: %q, %v", environment, err)
	}
	if sid, err := unix.Getsid(m.PID); err != nil || sid != m.PID {
		t.Errorf("session of the first process: %d, %v", sid, err)
	}
	for _, command := range []string{
		"echo x > /proc/sys/kernel/core_pattern",
		"echo 1 > /proc/sysrq-trigger",
		"mknod /tmp/disk b 254 0",
		"mount -o remount,rw /sys && echo 1 > /sys/kernel/uevent_seqnum",
		"cat /proc/kcore | head -c 1 | grep .",
		"echo 1 > /proc/sys/net/ipv4/ip_forward && echo 1 > /proc/sys/vm/drop_caches",
		"chroot /proc/1/root/../../.. test -e " + b.dataDir,
		"test -e /proc/1/root" + b.dataDir,
	} {
		if out, err := b.run(t, m, command); err == nil {
			t.Errorf("root of the machine may: %s\n%s", command, out)
		}
	}
	b.assertNoMount(t)
	b.delete(t, spec)
}

// TestUndecided: what has no command line is not taken for a machine.
func TestUndecided(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]bool{"": true, "loom\x00" + StageCommand + "\x00": true, "sshd: /usr/sbin/sshd -D [listener]": false} {
		if got := undecided([]byte(line)); got != want {
			t.Errorf("%q: %v, not %v", line, got, want)
		}
	}
}

// TestCommandsOutliveCtrlC: Ctrl-C reaches the process group of the terminal, and a
// program that a task runs is not in it.
func TestCommandsOutliveCtrlC(t *testing.T) {
	t.Parallel()
	out, err := command(t.Context(), "sh", "-c", `read pid name state parent group rest < /proc/self/stat; echo "$$ $group"`).Output()
	var pid, group int
	if _, scanErr := fmt.Sscan(string(out), &pid, &group); err != nil || scanErr != nil {
		t.Fatalf("%q: %v, %v", out, err, scanErr)
	}
	if group != pid {
		t.Errorf("process %d is in group %d, which Ctrl-C ends", pid, group)
	}
}
