package local

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// sshdConfig is read before Debian's own settings, which do not contradict it.
// Loom opens one connection per node and many sessions on it; the limits are
// there for people's mistakes, not for Loom. Without a pid file, "service ssh
// stop" on a machine cannot end its first process.
const sshdConfig = `PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
UseDNS no
MaxStartups 200:30:400
MaxSessions 200
PrintMotd no
PidFile none
HostKey /etc/ssh/ssh_host_ed25519_key
`

// finishBase makes a fresh Debian root fit for machines: nothing in it is
// secret or belongs to the host, no service starts by itself when a machine
// boots, and all owners are shifted into the machines' range.
func finishBase(root string) error {
	hostKeys, err := filepath.Glob(filepath.Join(root, "etc/ssh/ssh_host_*"))
	if err != nil {
		return err
	}
	for _, path := range append(hostKeys,
		filepath.Join(root, "usr/sbin/policy-rc.d"), filepath.Join(root, "etc/resolv.conf"),
		filepath.Join(root, "etc/hostname"), filepath.Join(root, "etc/hosts")) {
		if err := os.Remove(path); err != nil && !isGone(err) {
			return err
		}
	}
	for path, text := range map[string]string{
		"etc/ssh/sshd_config.d/10-loom.conf": sshdConfig,
		"etc/machine-id":                     "",
	} {
		if err := os.WriteFile(filepath.Join(root, path), []byte(text), 0o644); err != nil {
			return err
		}
	}
	if err := disableServices(root); err != nil {
		return err
	}
	return shiftOwners(root, 0, baseID)
}

// disableServices does what "update-rc.d NAME disable" does, for all: a base
// root carries the packages of several services, and a machine that boots again
// must start those it was told to start, not all.
func disableServices(root string) error {
	links, err := filepath.Glob(filepath.Join(root, "etc/rc[2345].d/S[0-9][0-9]*"))
	if err != nil {
		return err
	}
	for _, link := range links {
		dir, name := filepath.Split(link)
		if err := os.Rename(link, filepath.Join(dir, "K01"+name[3:])); err != nil {
			return err
		}
	}
	return nil
}

// shiftOwners moves every owner from the range that begins with one id to that which
// begins with another. Changing the owner takes away set-uid
// bits and file capabilities, which are put back; capabilities get the machines'
// root as theirs, else the kernel ignores them inside a user namespace.
func shiftOwners(root string, from, to int) error {
	return filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); err != nil {
			return &fs.PathError{Op: "lstat", Path: path, Err: err}
		}
		if int(st.Uid) >= to && int(st.Uid) < to+idCount { // a second name of a file that was seen before
			return nil
		}
		caps := make([]byte, 64)
		n, capErr := unix.Lgetxattr(path, "security.capability", caps)
		if err := os.Lchown(path, int(st.Uid)-from+to, int(st.Gid)-from+to); err != nil {
			return err
		}
		if st.Mode&unix.S_IFMT == unix.S_IFREG && st.Mode&(unix.S_ISUID|unix.S_ISGID) != 0 {
			if err := unix.Chmod(path, st.Mode&0o7777); err != nil {
				return &fs.PathError{Op: "chmod", Path: path, Err: err}
			}
		}
		if capErr == nil && n > 0 {
			if err := unix.Lsetxattr(path, "security.capability", shiftCapability(caps[:n], to), 0); err != nil {
				return &fs.PathError{Op: "set capability of", Path: path, Err: err}
			}
		}
		return nil
	})
}

// shiftCapability names the root user that a file capability (linux/capability.h) is
// meant for; one of revision 2, which names none, becomes one of revision 3.
func shiftCapability(value []byte, root int) []byte {
	const revisionMask, revision2, revision3 = 0xff000000, 0x02000000, 0x03000000
	if len(value) != 20 && len(value) != 24 {
		return value
	}
	magic := binary.LittleEndian.Uint32(value)
	if revision := magic & revisionMask; revision != revision2 && revision != revision3 {
		return value
	}
	shifted := make([]byte, 24)
	copy(shifted, value)
	binary.LittleEndian.PutUint32(shifted, magic&^uint32(revisionMask)|revision3)
	binary.LittleEndian.PutUint32(shifted[20:], uint32(root))
	return shifted
}

// hostResolvers returns the name servers of the host that a machine can ask too:
// not those on the host's own loopback, where a machine's packets never arrive.
func hostResolvers() string {
	for _, path := range []string{"/etc/resolv.conf", "/run/systemd/resolve/resolv.conf"} {
		if text, err := os.ReadFile(path); err == nil {
			if usable := usableResolvers(string(text)); usable != "" {
				return usable
			}
		}
	}
	return ""
}

func usableResolvers(text string) string {
	var lines []string
	servers := 0
	for _, line := range strings.Split(text, "\n") {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		switch fields[0] {
		case "nameserver":
			if strings.HasPrefix(fields[1], "127.") || strings.Contains(fields[1], ":") {
				continue // machines have no IPv6
			}
			servers++
		case "search", "domain", "options":
		default:
			continue
		}
		lines = append(lines, strings.Join(fields, " "))
	}
	if servers == 0 {
		return ""
	}
	return strings.Join(lines, "\n") + "\n"
}

// mkdirOwned makes a directory that belongs to root of a machine.
func mkdirOwned(path string, mode os.FileMode, owner int) error {
	if err := os.Mkdir(path, mode); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return os.Chown(path, owner, owner)
}
