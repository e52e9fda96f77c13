package cloud

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"loom/provisioner/remote"
)

//go:embed disks.sh
var disksScript string

const (
	// DataMount is where data disks are mounted; further ones at DataMount and a number.
	DataMount = "/data"
	// DataOptions are how they are mounted where a cloud wants nothing else.
	DataOptions = "defaults,noatime,nofail"
	// spareLeast is the smallest disk that is taken for data, in bytes.
	spareLeast = 1 << 30
)

// Disks says what CONFIRM does about the disks of a machine. A disk that holds
// anything (a file system, partitions, the mark of a RAID) is never touched; what was set up before is left as it is.
type Disks struct {
	// Grow makes the root file system as large as its disk.
	Grow bool
	// First is a script that is run as root before the disks are looked at, also where
	// they are left alone: what the machine has to end before. The last line of its
	// standard error says what went wrong.
	First string
	// Named disks are formatted and mounted where they are there and empty.
	Named []NamedDisk
	// Spare chooses among the machine's unused whole disks those that become one file
	// system at DataMount; nil chooses none.
	Spare func(Block) bool
}

// NamedDisk is a data disk whose device is known.
type NamedDisk struct {
	// Device is an absolute path, such as /dev/disk/by-id/google-loom-data1.
	Device string
	// Mount is where it goes, Options how; empty: DataOptions.
	Mount, Options string
}

// Block is a whole disk of a machine.
type Block struct {
	// Path is that of its device, Model what it calls itself.
	Path, Model string
	// Size in bytes.
	Size int64
}

func (d Disks) none() bool { return d.First == "" && !d.Grow && len(d.Named) == 0 && d.Spare == nil }

// arrange sets up the disks. A message says what the machine lacks.
func (d Disks) arrange(ctx context.Context, conn *remote.Conn, s *Session) (message string, err error) {
	if message, err := d.first(ctx, conn, s); err != nil || message != "" || s.LeaveDisks {
		return message, err
	}
	var lines strings.Builder
	for _, n := range d.Named {
		options := n.Options
		if options == "" {
			options = DataOptions
		}
		fmt.Fprintf(&lines, "%s %s %s\n", n.Mount, options, n.Device)
	}
	if d.Spare != nil {
		out, err := conn.Exec(ctx, remote.Command{Text: "command -v lsblk >/dev/null || exit 0; lsblk -J -b -p -o NAME,TYPE,SIZE,RO,RM,FSTYPE,MOUNTPOINT,MODEL",
			Root: true, Tail: 256 << 10})
		if err != nil {
			return "", err
		}
		var paths []string
		for _, b := range unused([]byte(out.Stdout)) {
			if d.Spare(b) {
				paths = append(paths, b.Path)
			}
		}
		// Also without any: an earlier try may have formatted them and gone no further.
		fmt.Fprintf(&lines, "%s %s %s\n", DataMount, DataOptions, strings.Join(paths, " "))
	}
	grow := ""
	if d.Grow {
		grow = "yes"
	}
	return s.script(ctx, conn, "setting up the disks", remote.Command{
		Text: disksScript, Stdin: strings.NewReader(lines.String()), Env: map[string]string{"LOOM_GROW": grow},
	})
}

// first runs the script that comes before the disks.
func (d Disks) first(ctx context.Context, conn *remote.Conn, s *Session) (message string, err error) {
	if d.First == "" {
		return "", nil
	}
	return s.script(ctx, conn, "what comes before the disks", remote.Command{Text: d.First})
}

// script runs one as root. What it prints goes to the log; a message says what the
// machine lacks.
func (s *Session) script(ctx context.Context, conn *remote.Conn, what string, c remote.Command) (message string, err error) {
	c.Root = true
	c.Line = func(stream, text string) {
		if stream == "stdout" && text != "" {
			s.Log("%s", text)
		}
	}
	out, err := conn.Exec(ctx, c)
	if err != nil || out.OK() {
		return "", err
	}
	if message = s.clean(remote.LastLine(out.Stderr)); message == "" {
		message = fmt.Sprintf("%s exited with %d", what, out.Code)
	}
	return message, nil
}

// unused reads the answer of lsblk and gives the whole disks that nothing uses,
// sorted by name. What cannot be read gives none.
func unused(answer []byte) []Block {
	var tree struct {
		Devices []struct {
			Name       string `json:"name"`
			Type       string `json:"type"`
			Size       any    `json:"size"`
			ReadOnly   any    `json:"ro"`
			Removable  any    `json:"rm"`
			FSType     any    `json:"fstype"`
			Mountpoint any    `json:"mountpoint"`
			Model      any    `json:"model"`
			Children   []any  `json:"children"`
		} `json:"blockdevices"`
	}
	if json.Unmarshal(answer, &tree) != nil {
		return nil
	}
	var blocks []Block
	for _, d := range tree.Devices {
		size, err := strconv.ParseInt(flag(d.Size), 10, 64)
		if err != nil || size < spareLeast || d.Type != "disk" || len(d.Children) > 0 || !strings.HasPrefix(d.Name, "/dev/") || strings.ContainsAny(d.Name, " \t\n") {
			continue
		}
		if isOn(d.ReadOnly) || isOn(d.Removable) || flag(d.FSType) != "" || flag(d.Mountpoint) != "" {
			continue
		}
		blocks = append(blocks, Block{Path: d.Name, Model: flag(d.Model), Size: size})
	}
	slices.SortFunc(blocks, func(a, b Block) int { return strings.Compare(a.Path, b.Path) })
	return blocks
}

// flag reads a value of lsblk, whose kind differs from version to version.
func flag(value any) string {
	switch v := value.(type) {
	case string:
		return strings.TrimSpace(v)
	case float64:
		return strconv.FormatInt(int64(v), 10)
	case bool:
		return strconv.FormatBool(v)
	}
	return ""
}

func isOn(value any) bool { return flag(value) == "1" || flag(value) == "true" }
