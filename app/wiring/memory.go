package wiring

import (
	"bufio"
	"bytes"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"runtime/debug"
	"strconv"
	"strings"
)

// LimitMemory has Go collect garbage earlier when most of the memory is taken, unless
// GOMEMLIMIT says otherwise. Nothing is refused for it.
func LimitMemory(log *slog.Logger, environ []string) {
	if variable(environ, "GOMEMLIMIT") != "" {
		return
	}
	if most := memory(os.DirFS("/")); most > 0 {
		limit := most / 5 * 4
		debug.SetMemoryLimit(limit)
		log.Debug("soft limit of memory", "bytes", limit)
	}
}

// memory is what this process may take, in bytes: that of the host or of the tightest control
// group around it; 0 if unknown.
func memory(root fs.FS) int64 {
	most := int64(0)
	atMost := func(bytes int64) {
		if bytes > 0 && (most == 0 || bytes < most) {
			most = bytes
		}
	}
	for _, line := range lines(root, "proc/meminfo") {
		if fields := strings.Fields(line); len(fields) >= 2 && fields[0] == "MemTotal:" {
			kilobytes, _ := strconv.ParseInt(fields[1], 10, 64) //nolint:errcheck // 0 where it is no number
			atMost(kilobytes << 10)
		}
	}
	for _, line := range lines(root, "proc/self/cgroup") {
		parts := strings.SplitN(line, ":", 3)
		if len(parts) < 3 {
			continue
		}
		top, file := "sys/fs/cgroup", "memory.max"
		switch {
		case parts[1] == "memory": // of the first version
			top, file = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
		case parts[0] != "0" || parts[1] != "":
			continue
		}
		// Within a container the path may be that of the host: then the top has the limit.
		for group := path.Clean("/" + parts[2]); ; group = path.Dir(group) {
			for _, text := range lines(root, path.Join(top, group, file)) {
				limit, _ := strconv.ParseInt(text, 10, 64) //nolint:errcheck // 0 for “max”
				atMost(limit)
			}
			if group == "/" {
				break
			}
		}
	}
	return most
}

// lines are those of a file, none if it cannot be read.
func lines(root fs.FS, name string) []string {
	content, err := fs.ReadFile(root, name)
	if err != nil {
		return nil
	}
	var all []string
	for s := bufio.NewScanner(bytes.NewReader(content)); s.Scan(); {
		all = append(all, s.Text())
	}
	return all
}
