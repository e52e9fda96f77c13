// Package diskspace keeps a part of each file system free: what would fill it is refused
// before, with a sentence for people.
//
// The package must not delete anything.
package diskspace

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"loom/app/loom"
)

// Option is the name of the setting.
const Option = "LOOM_DISK_RESERVE"

// Reserve is what stays free of a file system. The zero value keeps nothing.
type Reserve struct {
	// Percent of the file system and Bytes; the smaller counts, a zero one does not.
	Percent float64
	Bytes   int64
}

// Parse reads “10%,5g”: a share, a size, or both; “0” keeps nothing.
func Parse(text string) (r Reserve, err error) {
	if strings.TrimSpace(text) == "0" {
		return Reserve{}, nil
	}
	for _, part := range strings.Split(text, ",") {
		part = strings.TrimSpace(part)
		if share, ok := strings.CutSuffix(part, "%"); ok {
			if r.Percent, err = strconv.ParseFloat(strings.TrimSpace(share), 64); err != nil || !(r.Percent > 0 && r.Percent < 100) {
				return Reserve{}, wrong(text)
			}
			continue
		}
		shift := 0
		if i := strings.IndexAny(part, "kmgt"); i > 0 && i == len(part)-1 {
			shift, part = 10*(1+strings.IndexByte("kmgt", part[i])), part[:i]
		}
		n, err := strconv.ParseInt(part, 10, 64)
		if err != nil || n <= 0 || n > 1<<50>>shift {
			return Reserve{}, wrong(text)
		}
		r.Bytes = n << shift
	}
	return r, nil
}

func wrong(text string) error {
	return loom.NewError(loom.Invalid, "%s is “%s”; it takes a share, a size or both, such as 10%%,5g, or 0 for none.", Option, text)
}

// Free is what may be written of a file system, and what of it stays free.
type Free struct{ Bytes, Kept int64 }

// Look tells this of the file system of a directory, or of the nearest one above it that
// exists.
func (r Reserve) Look(dir string) (Free, error) {
	for {
		var st unix.Statfs_t
		err := unix.Statfs(dir, &st)
		if err == nil {
			return Free{Bytes: int64(st.Bavail) * st.Bsize, Kept: r.of(int64(st.Blocks) * st.Bsize)}, nil
		}
		if up := filepath.Dir(dir); err == unix.ENOENT && up != dir {
			dir = up
			continue
		}
		return Free{}, fmt.Errorf("look at the free space of %s: %w", dir, err)
	}
}

func (r Reserve) of(size int64) int64 {
	share := int64(float64(size) * r.Percent / 100)
	switch {
	case r.Percent == 0:
		return r.Bytes
	case r.Bytes == 0:
		return share
	}
	return min(share, r.Bytes)
}

// Check refuses what would write size bytes to the file system of a directory and leave
// less than the reserve. What is the beginning of the sentence, such as “This file is not
// stored”.
func (r Reserve) Check(dir, what string, size int64) error {
	free, err := r.Look(dir)
	if err != nil {
		return err
	}
	if free.Bytes-size >= free.Kept {
		return nil
	}
	return loom.NewError(loom.Exhausted, "%s: the disk of this host has %s left, and %s of it stay free (%s). Delete clusters or files, or add disk.", what, Size(free.Bytes), Size(free.Kept), Option)
}

// Size writes a number of bytes for people.
func Size(n int64) string {
	for _, unit := range []struct {
		size float64
		name string
	}{{1 << 40, "TB"}, {1 << 30, "GB"}, {1 << 20, "MB"}} {
		if float64(n) >= unit.size {
			return strconv.FormatFloat(float64(n)/unit.size, 'f', 1, 64) + " " + unit.name
		}
	}
	return strconv.FormatInt(n>>10, 10) + " kB"
}
