package external

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"loom/provisioner/confine"
)

// maxFiles is how many files of a plugin are looked at.
const maxFiles = 20_000

// safe says why the files of a plugin are not to be trusted: whoever may change
// them may do whatever the provisioner may. Links are followed first.
func safe(dir string) error {
	count := 0
	return filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if count++; count > maxFiles {
			return fmt.Errorf("%s has more than %d files", dir, maxFiles)
		}
		real, err := filepath.EvalSymlinks(path)
		if err != nil {
			return err
		}
		return safeFile(real)
	})
}

func safeFile(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fmt.Errorf("nobody can tell who owns %s", path)
	}
	if owner.Uid != 0 && int(owner.Uid) != os.Geteuid() {
		return fmt.Errorf("%s belongs to user %d, who could change it; give it to root or to the user of the provisioner", path, owner.Uid)
	}
	if info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("%s can be changed by others (mode %04o); run: chmod go-w %s", path, info.Mode().Perm(), path)
	}
	return nil
}

// reaches says why the user cannot get at a file or directory and run it.
func reaches(u *confine.User, path string) error {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	for at := real; ; at = filepath.Dir(at) {
		info, err := os.Stat(at)
		if err != nil {
			return err
		}
		owner, ok := info.Sys().(*syscall.Stat_t)
		mode := info.Mode().Perm()
		allowed := mode&0o001 != 0
		if ok && int(owner.Uid) == u.UID {
			allowed = mode&0o100 != 0
		} else if ok && (int(owner.Gid) == u.GID || slices.Contains(u.Groups, int(owner.Gid))) {
			allowed = mode&0o010 != 0
		}
		if !allowed {
			return fmt.Errorf("it may not pass %s (mode %04o); run: chmod o+x %s, or name another user (LOOM_PLUGIN_USER)", at, mode, at)
		}
		if at == filepath.Dir(at) {
			return nil
		}
	}
}

// find returns the path of the program of a command.
func (h *Host) find(dir string, command []string) (string, error) {
	name := command[0]
	if strings.Contains(name, "/") {
		if !filepath.IsAbs(name) {
			name = filepath.Join(dir, name)
		}
		if err := executable(name); err != nil {
			return "", err
		}
		return name, nil
	}
	for _, place := range filepath.SplitList(h.path()) {
		if candidate := filepath.Join(place, name); filepath.IsAbs(place) && executable(candidate) == nil {
			return candidate, nil
		}
	}
	return "", fmt.Errorf("the program “%s” is not in the PATH of the provisioner (%s); install it", name, h.path())
}

// arguments returns a command with the full paths of the plugin's files that it
// names, such as the script of an interpreter: the current directory of a plugin
// is another one.
func arguments(dir string, command []string) []string {
	args := slices.Clone(command)
	for i, argument := range args[1:] {
		if path := filepath.Join(dir, argument); filepath.IsLocal(argument) {
			if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
				args[i+1] = path
			}
		}
	}
	return args
}

func executable(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("the program %s is not there", path)
	case err != nil:
		return err
	case !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0:
		return fmt.Errorf("%s is no program; run: chmod +x %s", path, path)
	}
	return nil
}

// fingerprint is the SHA-256 of the program, and of the plugin's own files that
// its command names, such as the script of an interpreter.
func fingerprint(dir, program string, command []string) (string, error) {
	hash := sha256.New()
	files := []string{program}
	for _, argument := range arguments(dir, command)[1:] {
		if strings.HasPrefix(argument, dir+"/") {
			files = append(files, argument)
		}
	}
	if len(files) > 1 && !strings.HasPrefix(program, dir+"/") {
		files = files[1:] // an interpreter is not the plugin
	}
	for _, path := range files {
		file, err := os.Open(path)
		if err != nil {
			return "", err
		}
		_, err = io.Copy(hash, file)
		if err = errors.Join(err, file.Close()); err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}
