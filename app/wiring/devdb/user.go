package devdb

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// runAs is the user the server runs as; nil: the present one.
type runAs struct {
	uid, gid uint32
}

// serverUser picks whom PostgreSQL runs as: ourselves, or for root "postgres",
// else "nobody".
func serverUser() (*runAs, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
		if err1 == nil && err2 == nil {
			return &runAs{uid: uint32(uid), gid: uint32(gid)}, nil
		}
	}
	return nil, fmt.Errorf("PostgreSQL does not run as root and there is neither a user “postgres” nor “nobody” on this machine")
}

// apply makes a command run as the user, without its groups.
func (u *runAs) apply(cmd *exec.Cmd) {
	if u == nil {
		return
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: u.uid, Gid: u.gid, Groups: []uint32{u.gid}}}
}

// reaches reports whether the user may enter every existing part of dir.
func (u *runAs) reaches(dir string) bool {
	for p := dir; ; p = filepath.Dir(p) {
		if info, err := os.Stat(p); err == nil {
			stat := info.Sys().(*syscall.Stat_t)
			mode := info.Mode().Perm()
			switch {
			case stat.Uid == u.uid && mode&0o100 != 0, stat.Gid == u.gid && mode&0o010 != 0, mode&0o001 != 0:
			default:
				return false
			}
		}
		if p == filepath.Dir(p) {
			return true
		}
	}
}
