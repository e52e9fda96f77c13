package provisioner

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"loom/app/archive"
	"loom/provisioner/confine"
)

// unpackLimit is how long the unpacking of an archive may take.
const unpackLimit = 10 * time.Minute

// unpackFunction is the name of unpackHere for package confine.
const unpackFunction = "unpack"

// Confined runs what package confine was asked for: a program, or the unpacking of an
// archive. The program must call it with the arguments behind confine.Command, before
// doing anything else.
func Confined(args []string) int {
	return confine.Main(args, map[string]func() error{unpackFunction: unpackHere})
}

// unpackHere unpacks the archive on standard input into the current directory.
func unpackHere() error {
	info, err := os.Stdin.Stat()
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(".")
	if err != nil {
		return err
	}
	defer root.Close()
	syscall.Umask(0o022)
	limits := archive.Usual
	var disk syscall.Statfs_t
	if err := syscall.Statfs(".", &disk); err != nil {
		return err
	}
	limits.Bytes = min(limits.Bytes, room(disk))
	err = archive.Extract(archive.Source{Stream: os.Stdin, At: os.Stdin, Size: info.Size()}, limits, root)
	if refused := (*archive.Refused)(nil); errors.As(err, &refused) && refused.Name == "" && limits.Bytes < archive.Usual.Bytes {
		return fmt.Errorf("%w; there is no more room on the disk of the provisioner", err)
	}
	return err
}

// spare is what unpacking leaves free of a disk at least, in bytes; of a small disk it is
// a twentieth.
const spare = 1 << 30

// room is how many bytes may be unpacked on a disk.
func room(disk syscall.Statfs_t) int64 {
	size := uint64(disk.Bsize) //nolint:gosec // a size
	free, keep := disk.Bavail*size, min(disk.Blocks*size/20, spare)
	if free <= keep {
		return 0
	}
	return int64(min(free-keep, 1<<62)) //nolint:gosec // bounded
}

// unpack unpacks an archive into dir, which must be empty and which nobody else
// reaches: a process of the user without rights does it and dir is the provisioner's
// again when that has ended.
func (c *Cache) unpack(ctx context.Context, file, dir string) error {
	if c.User != nil {
		if err := os.Chown(dir, c.User.UID, c.User.GID); err != nil {
			return err
		}
	}
	if err := c.unpackConfined(ctx, file, dir); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	return reclaim(root)
}

func (c *Cache) unpackConfined(ctx context.Context, file, dir string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, unpackLimit, fmt.Errorf("unpacking it takes more than %s", unpackLimit))
	defer cancel()
	source, err := os.Open(file)
	if err != nil {
		return err
	}
	defer source.Close()
	told, tell, err := os.Pipe()
	if err != nil {
		return err
	}
	defer told.Close()
	stage := confine.Stage{Do: unpackFunction, DataMB: 1024, OpenFiles: 64, Seconds: int(unpackLimit.Seconds()), FileBytes: archive.Usual.Bytes + 1, User: c.User}
	if c.User != nil {
		stage.Processes = confine.Processes
	}
	cmd, err := confine.Prepare(stage, tell)
	if err != nil {
		return errors.Join(err, tell.Close())
	}
	cmd.Dir, cmd.Stdin = dir, source
	err = confine.Start(cmd)
	if closing := tell.Close(); err == nil {
		err = closing
	}
	if err != nil {
		return fmt.Errorf("begin to unpack: %w", err)
	}
	defer context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })()
	why, _ := io.ReadAll(io.LimitReader(told, 4<<10))
	err = cmd.Wait()
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case len(why) > 0:
		return errors.New(string(bytes.ToValidUTF8(why, []byte("?"))))
	}
	return fmt.Errorf("unpacking it ended with %s, as when it takes too much memory or time", strings.TrimPrefix(err.Error(), "signal: "))
}

// reclaim makes this process the owner of everything below, which must be folders and
// regular files with one name each.
func reclaim(root *os.Root) error {
	return fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		status, ok := info.Sys().(*syscall.Stat_t)
		mode := fs.FileMode(0o644)
		switch {
		case info.IsDir():
			mode = 0o755
		case !info.Mode().IsRegular() || !ok || status.Nlink != 1:
			return fmt.Errorf("unpacking left %s, which is no folder and no file", filepath.ToSlash(name))
		case info.Mode()&0o111 != 0:
			mode = 0o755
		}
		if err := root.Lchown(name, os.Geteuid(), os.Getegid()); err != nil {
			return err
		}
		return root.Chmod(name, mode)
	})
}

// settle makes to the content of an archive unpacked in from: a single top directory
// is stripped, whatever its name.
func settle(from, to string) error {
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	if len(entries) == 1 && entries[0].IsDir() {
		return os.Rename(filepath.Join(from, entries[0].Name()), to)
	}
	return os.Rename(from, to)
}
