// Package health looks at machines and services: one command on a kept connection says how
// a machine is, and checks of services run in it or beside it.
//
// It knows no database and judges nothing: what results mean is in app/loom. It must not
// write to a machine, learn a host key or take a worker of a tenant.
package health

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"loom/app/loom"
	"loom/provisioner/remote"
)

// Bounds of one look.
const (
	maxOutput  = 64 << 10 // bytes of a machine
	maxPart    = 2 << 10  // bytes of a check
	maxMessage = 400      // bytes of a message
	maxPaths   = 48 << 10 // bytes of the paths of files that are summed
	sumLimit   = 20 * time.Second
	// MaxValues is how many numbers a check may report.
	MaxValues = 8
)

// Command is a check that runs on the machine.
type Command struct {
	Service string
	// Text is shell text that runs as root; its macros are expanded.
	Text    string
	Timeout time.Duration
}

// Result is what one check saw.
type Result struct {
	Passed bool
	// Message is the first line of output of a failed check, or what went wrong.
	Message string
	// Values are the numbers that the check reported, by name.
	Values map[string]float64
}

// Seen is what one look saw of a machine.
type Seen struct {
	BootID string
	loom.Load
	// Services has a result for each command.
	Services map[string]Result
	// Files are SHA-256 sums in hexadecimal, "" for a file that is not there. What could not
	// be read is missing.
	Files map[string]string
}

// Look runs one command that reads the load, runs the checks and sums the files. Its error
// is that of the connection; what a machine leaves out is unknown or failed.
func Look(ctx context.Context, conn *remote.Conn, commands []Command, files []string) (Seen, error) {
	mark := newMark()
	limit := 15 * time.Second
	for _, c := range commands {
		limit += c.Timeout + killAfter + time.Second
	}
	if len(files) > 0 {
		limit += sumLimit + killAfter
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	outcome, err := conn.Exec(ctx, remote.Command{Text: script(mark, commands, files), Root: true, Tail: maxOutput})
	if err != nil {
		return Seen{}, err
	}
	return parse(mark, outcome.Stdout, commands, files), nil
}

// newMark returns a word that no output contains but by intent.
func newMark() string {
	b := make([]byte, 12)
	_, _ = rand.Read(b)
	return "loom-" + hex.EncodeToString(b)
}

// killAfter is how long a check that is out of time has to end.
const killAfter = time.Second

// script returns the shell text of a look. Each part begins with a line of its own, the mark
// and the part's name; the status of a check follows its output in the same way.
func script(mark string, commands []Command, files []string) string {
	var b strings.Builder
	b.WriteString("renice -n 10 $$ >/dev/null 2>&1\nexec 2>/dev/null </dev/null\n")
	part := func(name string) { fmt.Fprintf(&b, "printf '\\n%s %s\\n'\n", mark, name) }
	part("boot")
	b.WriteString("cat /proc/sys/kernel/random/boot_id\n")
	part("load")
	b.WriteString("cut -d ' ' -f 1 /proc/loadavg; nproc\n")
	part("memory")
	b.WriteString("grep -E '^Mem(Total|Available):' /proc/meminfo\n")
	part("disk")
	b.WriteString(bounded(5*time.Second) + "df -P / | tail -n 1\n")
	for i, c := range commands {
		part("check " + strconv.Itoa(i))
		// The status goes past the pipe that bounds the output. Whatever a check leaves
		// running may hold the pipe, so the reader has a limit as well.
		fmt.Fprintf(&b, "{ s=$({ { %ssh -c %s 2>&1 3>&- 4>&-; echo $? >&3; } | %shead -c %d >&4; } 3>&1); } 4>&1\n",
			bounded(c.Timeout), remote.Quote(c.Text), bounded(c.Timeout+killAfter+time.Second), maxPart)
		fmt.Fprintf(&b, "printf '\\n%s status %d %%s\\n' \"$s\"\n", mark, i)
	}
	if len(files) > 0 {
		b.WriteString(sumScript(mark, files))
	}
	part("end")
	return b.String()
}

// sumScript returns the shell text that sums files, all of them within a time. A pipe or a
// device is no file, and none of the next ones waits for it.
func sumScript(mark string, files []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%ssh <<'%s'\n", bounded(sumLimit), mark)
	fmt.Fprintf(&b, "sum() { printf '\\n%s file %%s\\n' \"$1\"; if [ -f \"$2\" ]; then %ssha256sum < \"$2\"; else echo none; fi; }\n", mark, bounded(5*time.Second))
	size := 0
	for i, path := range files {
		if size += len(path); size > maxPaths {
			break
		}
		fmt.Fprintf(&b, "sum %d %s\n", i, remote.Quote(path))
	}
	b.WriteString(mark + "\n")
	return b.String()
}

// bounded is the beginning of a command that may take so long.
func bounded(limit time.Duration) string {
	return fmt.Sprintf("timeout -k %d %d ", int(killAfter.Seconds()), int(limit.Round(time.Second).Seconds()))
}

// parse reads the output of a look. It takes anything: a machine may be hostile.
func parse(mark, output string, commands []Command, files []string) Seen {
	seen := Seen{Load: loom.NoLoad, Services: map[string]Result{}, Files: map[string]string{}}
	parts, statuses := map[string]string{}, map[string]string{}
	for _, text := range strings.Split(output, "\n"+mark+" ")[1:] {
		name, body, _ := strings.Cut(text, "\n")
		if rest, ok := strings.CutPrefix(name, "status "); ok {
			index, status, _ := strings.Cut(rest, " ")
			if _, twice := statuses[index]; !twice {
				statuses[index] = status
			}
		} else if _, twice := parts[name]; !twice {
			parts[name] = body
		}
	}
	if id := strings.TrimSpace(parts["boot"]); len(id) == 36 && !strings.ContainsFunc(id, func(r rune) bool { return !strings.ContainsRune("0123456789abcdef-", r) }) {
		seen.BootID = id
	}
	if words := strings.Fields(parts["load"]); len(words) == 2 {
		load, errLoad := strconv.ParseFloat(words[0], 64)
		cores, errCores := strconv.Atoi(words[1])
		if errLoad == nil && errCores == nil && cores > 0 && load >= 0 {
			seen.CPU = percent(load, float64(cores))
		}
	}
	seen.Memory = memory(parts["memory"])
	if words := strings.Fields(parts["disk"]); len(words) >= 5 {
		if used, err := strconv.Atoi(strings.TrimSuffix(words[4], "%")); err == nil && used >= 0 && used <= 100 {
			seen.Disk = used
		}
	}
	for i, c := range commands {
		index := strconv.Itoa(i)
		seen.Services[c.Service] = result(c, parts["check "+index], statuses[index])
	}
	for i, path := range files {
		sum, _, _ := strings.Cut(strings.TrimSpace(parts["file "+strconv.Itoa(i)]), " ")
		switch {
		case sum == "none":
			seen.Files[path] = ""
		case len(sum) == 64 && !strings.ContainsFunc(sum, func(r rune) bool { return !strings.ContainsRune("0123456789abcdef", r) }):
			seen.Files[path] = sum
		}
	}
	return seen
}

// percent returns a share, at most 100.
func percent(part, whole float64) int {
	return int(min(100, max(0, 100*part/whole)) + 0.5)
}

// memory returns the share of memory in use, -1 where the machine does not say.
func memory(text string) int {
	values := map[string]float64{}
	for line := range strings.Lines(text) {
		name, rest, _ := strings.Cut(line, ":")
		if words := strings.Fields(rest); len(words) > 0 {
			if kb, err := strconv.ParseFloat(words[0], 64); err == nil && kb >= 0 {
				values[name] = kb
			}
		}
	}
	total, available := values["MemTotal"], values["MemAvailable"]
	if _, told := values["MemAvailable"]; !told || total <= 0 {
		return -1
	}
	return percent(total-available, total)
}

// result reads what a check printed and its exit status.
func result(c Command, output, status string) Result {
	code, err := strconv.Atoi(strings.TrimSpace(status))
	if err != nil {
		return Result{Message: "The check gave no exit status."}
	}
	r := Result{Passed: code == 0, Values: values(output)}
	if r.Passed {
		return r
	}
	switch code {
	case 124, 137:
		r.Message = fmt.Sprintf("no result within %d s", int(c.Timeout.Seconds()))
	default:
		r.Message = fmt.Sprintf("exit status %d", code)
	}
	for line := range strings.Lines(output) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "value ") {
			r.Message += ": " + line
			break
		}
	}
	r.Message = shorten(r.Message)
	return r
}

// values reads the lines “value NAME NUMBER” of a check.
func values(output string) map[string]float64 {
	var found map[string]float64
	for line := range strings.Lines(output) {
		words := strings.Fields(line)
		if len(words) != 3 || words[0] != "value" || len(words[1]) > 40 || len(found) >= MaxValues {
			continue
		}
		number, err := strconv.ParseFloat(words[2], 64)
		if err != nil || number-number != 0 { // neither infinite nor NaN
			continue
		}
		if found == nil {
			found = map[string]float64{}
		}
		found[words[1]] = number
	}
	return found
}

// shorten cuts a message and takes control characters out of it.
func shorten(text string) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
	if len(text) > maxMessage {
		text = strings.ToValidUTF8(text[:maxMessage-len("…")], "") + "…"
	}
	return text
}
