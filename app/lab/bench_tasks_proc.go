package lab

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// clockTick is the unit of times in /proc/PID/stat; it is 100 a second on every
// Linux that Go runs on.
const clockTick = 10 * time.Millisecond

// procStat are the fields of /proc/PID/stat that are used here.
type procStat struct {
	parent int
	// own is the processor time of the process, reaped that of its children that
	// have ended.
	own, reaped time.Duration
}

// readStat reads the figures of a process.
func readStat(pid int) (procStat, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return procStat{}, err
	}
	return parseStat(string(data))
}

// parseStat reads a line of /proc/PID/stat. The name of the program, in brackets,
// may hold anything.
func parseStat(line string) (procStat, error) {
	_, rest, ok := strings.Cut(line[max(0, strings.LastIndex(line, ")")):], " ")
	fields := strings.Fields(rest)
	if !ok || len(fields) < 15 {
		return procStat{}, fmt.Errorf("/proc/PID/stat has the line %q", line)
	}
	var n [15]int
	for i := 1; i < len(n); i++ {
		var err error
		if n[i], err = strconv.Atoi(fields[i]); err != nil {
			return procStat{}, fmt.Errorf("/proc/PID/stat has the line %q: %w", line, err)
		}
	}
	return procStat{parent: n[1], own: time.Duration(n[11]+n[12]) * clockTick, reaped: time.Duration(n[13]+n[14]) * clockTick}, nil
}

// cpuOf returns the processor time that processes have used so far.
func cpuOf(processes ...*benchProcess) (time.Duration, error) {
	var sum time.Duration
	for _, p := range processes {
		s, err := readStat(p.cmd.Process.Pid)
		if err != nil {
			return 0, err
		}
		sum += s.own
	}
	return sum, nil
}

// postgresCPU returns the processor time that the instance's PostgreSQL has used so
// far.
func (b *benchInstance) postgresCPU(ctx context.Context) (time.Duration, error) {
	var backend int
	if err := b.System.DB.GetContext(ctx, &backend, `SELECT pg_backend_pid()`); err != nil {
		return 0, err
	}
	one, err := readStat(backend)
	if err != nil {
		return 0, err
	}
	return postgresCPU(one.parent)
}

// postgresCPU returns the processor time that a server and all its processes have
// used so far, those that have ended included.
func postgresCPU(server int) (time.Duration, error) {
	s, err := readStat(server)
	if err != nil {
		return 0, err
	}
	sum := s.own + s.reaped
	found, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return 0, err
	}
	for _, path := range found {
		data, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		if child, err := parseStat(string(data)); err == nil && child.parent == server {
			sum += child.own
		}
	}
	return sum, nil
}

// memoryOf returns what a process holds, and held at most, in MB.
func memoryOf(p *benchProcess) (now, peak string) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		status = nil
	}
	return megabytes(string(status), "VmRSS:"), megabytes(string(status), "VmHWM:")
}
