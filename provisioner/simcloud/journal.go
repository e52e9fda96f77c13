package simcloud

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"
)

// journal is the file that processes of one installation share: a line for each
// machine made and for each gone. What attempts do is not in it.
type journal struct {
	file *os.File
	read int64
}

type entry struct {
	Made *Machine  `json:"made,omitempty"`
	Gone string    `json:"gone,omitempty"`
	At   time.Time `json:"at,omitzero"`
}

// Open returns the cloud that a file keeps; it is made when it is missing. Several
// processes may have it open.
func Open(path string) (*Books, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the books of invented machines: %w", err)
	}
	l := NewBooks()
	l.journal = &journal{file: file}
	done, err := l.sync(false)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	done()
	return l, nil
}

// Close closes the file.
func (l *Books) Close() error {
	if l.journal == nil {
		return nil
	}
	return l.journal.file.Close()
}

// sync takes the lock of the file and reads what others wrote; done gives the
// lock back. A line that a killed process could not end is cut off.
func (l *Books) sync(write bool) (done func(), err error) {
	j := l.journal
	if j == nil {
		return func() {}, nil
	}
	how := syscall.LOCK_SH
	if write {
		how = syscall.LOCK_EX
	}
	if err := flock(j.file, how); err != nil {
		return nil, fmt.Errorf("lock the books of invented machines: %w", err)
	}
	done = func() { flock(j.file, syscall.LOCK_UN) } //nolint:errcheck // it ends with the process at the latest
	if err := l.catchUp(); err != nil {
		done()
		return nil, fmt.Errorf("read the books of invented machines: %w", err)
	}
	return done, nil
}

func flock(f *os.File, how int) error {
	for {
		err := syscall.Flock(int(f.Fd()), how)
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

func (l *Books) catchUp() error {
	j := l.journal
	if size, err := j.file.Seek(0, io.SeekEnd); err != nil || size == j.read {
		return err
	}
	lines := bufio.NewReader(io.NewSectionReader(j.file, j.read, 1<<40))
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil // what is left has no end: the next write goes over it
		}
		if err != nil {
			return err
		}
		var e entry
		if json.Unmarshal(line, &e) == nil {
			switch m := l.machines[e.Gone]; {
			case e.Made != nil:
				l.add(*e.Made)
			case m != nil:
				m.Gone = e.At
			}
		}
		j.read += int64(len(line))
	}
}

// write appends what its caller did already; the lock is held.
func (j *journal) write(e entry) error {
	if j == nil {
		return nil
	}
	line, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("write the books of invented machines: %w", err)
	}
	line = append(line, '\n')
	if err := j.file.Truncate(j.read); err != nil {
		return fmt.Errorf("write the books of invented machines: %w", err)
	}
	if _, err := j.file.WriteAt(line, j.read); err != nil {
		return fmt.Errorf("write the books of invented machines: %w", err)
	}
	j.read += int64(len(line))
	return nil
}
