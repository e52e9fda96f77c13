package work

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"

	"loom/app/execution"
	"loom/app/loom"
)

// pending keeps results on disk from the end of an attempt until they are
// recorded, so that a process that is killed in between loses no machine. An
// empty dir keeps nothing.
//
// They are lines of one file per process, locked while it lives: making a file for
// each result costs more than everything else that is done for a short task.
type pending struct {
	dir string

	mu   sync.Mutex
	file *os.File // nil before the first result
	// lines are the results that wait, as they stand in the file; size is that of
	// the file.
	lines map[execution.AttemptKey][]byte
	size  int
	// torn says that the file may end in the middle of a line.
	torn bool
}

// pendingSuffix ends the name of a file.
const pendingSuffix = ".jsonl"

// pendingSize is the size from which a file is written anew without what it holds
// of recorded results.
const pendingSize = 1 << 20

// savedResult is a result in its line. The JSON of a result leaves out how the
// attempt was cut short. With Done it says that the one before it is recorded.
type savedResult struct {
	Key         execution.AttemptKey `json:"key"`
	Result      *loom.TaskResult     `json:"result,omitempty"`
	Interrupted bool                 `json:"interrupted,omitempty"`
	Aborted     bool                 `json:"aborted,omitempty"`
	Done        bool                 `json:"done,omitempty"`
}

func openPending(dir string) (*pending, error) {
	p := &pending{lines: map[execution.AttemptKey][]byte{}}
	if dir == "" {
		return p, nil
	}
	p.dir = filepath.Join(dir, ".pending")
	if err := os.MkdirAll(p.dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the directory of unrecorded results: %w", err)
	}
	return p, nil
}

// close returns the file up: the next process takes over what is left in it.
func (p *pending) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.file == nil {
		return nil
	}
	var err error
	if len(p.lines) == 0 {
		err = os.Remove(p.file.Name())
	}
	err = errors.Join(err, p.file.Close())
	p.file = nil
	return err
}

// save writes a result, without secrets. Where a password is part of it, the
// line tells less than the truth: the attempt was interrupted, and its next try
// adopts the machine whose id is kept.
func (p *pending) save(key execution.AttemptKey, r loom.TaskResult) error {
	if p.dir == "" {
		return nil
	}
	k := savedResult{Key: key, Result: &r, Interrupted: r.Interrupted, Aborted: r.Aborted}
	k.Result.Stdout, k.Result.Stderr = "", ""
	if auth, ok := r.Result["ssh-auth"].(map[string]any); ok && holdsSecret(auth) {
		k.Result = &loom.TaskResult{Status: -1, Message: "The process ended before the result was recorded."}
		if id, ok := r.Result["providerid"]; ok {
			k.Result.Result = map[string]any{"providerid": id}
		}
		k.Interrupted = true
	}
	line, err := json.Marshal(k)
	if err != nil {
		return fmt.Errorf("marshal the result of task %d: %w", key.Task, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.add(key, append(line, '\n'))
}

// add writes the line of a result.
func (p *pending) add(key execution.AttemptKey, line []byte) error {
	if err := p.write(line); err != nil {
		return err
	}
	p.lines[key] = line
	return nil
}

// write appends a line to the file of this process.
func (p *pending) write(line []byte) error {
	if p.file == nil || p.size > pendingSize {
		if err := p.begin(); err != nil {
			return err
		}
	}
	if p.torn {
		line = append([]byte{'\n'}, line...)
	}
	n, err := p.file.Write(line)
	p.size += n
	p.torn = err != nil
	return err
}

// begin makes a new file with the results that wait, and then removes the one
// before it.
func (p *pending) begin() error {
	file, err := lockedTemp(p.dir)
	if err != nil {
		return err
	}
	var all []byte
	for _, line := range p.lines {
		all = append(all, line...)
	}
	if _, err := file.Write(all); err != nil {
		return errors.Join(err, os.Remove(file.Name()), file.Close())
	}
	old := p.file
	p.file, p.size, p.torn = file, len(all), false
	if old != nil {
		return errors.Join(os.Remove(old.Name()), old.Close())
	}
	return nil
}

// lockedTemp makes a file that other processes see as that of a living one.
func lockedTemp(dir string) (*os.File, error) {
	for {
		file, err := os.CreateTemp(dir, "results-*"+pendingSuffix)
		if err != nil {
			return nil, err
		}
		if ours, err := lock(file); ours || err != nil {
			return file, err
		}
		file.Close() // somebody looked at it first, and removes it
	}
}

// lock takes a file for this process; false when another has it or had it and
// removed it.
func lock(file *os.File) (bool, error) {
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return false, nil
		}
		return false, fmt.Errorf("lock %s: %w", file.Name(), err)
	}
	ours, err := file.Stat()
	if err != nil {
		return false, err
	}
	there, err := os.Stat(file.Name())
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && os.SameFile(ours, there), err
}

func holdsSecret(auth map[string]any) bool {
	for name := range auth {
		if name != "user" && name != "identityfile" && name != "port" {
			return true
		}
	}
	return false
}

// forget notes that results were recorded or refused. Those it does not know it
// leaves alone.
func (p *pending) forget(keys ...execution.AttemptKey) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []byte
	for _, key := range keys {
		if p.lines[key] == nil {
			continue
		}
		line, err := json.Marshal(savedResult{Key: key, Done: true})
		if err != nil {
			return fmt.Errorf("marshal the end of task %d: %w", key.Task, err)
		}
		delete(p.lines, key)
		all = append(append(all, line...), '\n')
	}
	if len(all) == 0 {
		return nil
	}
	return p.write(all)
}

// unrecorded returns the results that could not be recorded yet: those of processes that
// ended without, which this one takes over, and its own.
func (p *pending) unrecorded() ([]savedResult, error) {
	if p.dir == "" {
		return nil, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	names, err := filepath.Glob(filepath.Join(p.dir, "*.json*"))
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if p.file == nil || name != p.file.Name() {
			err = errors.Join(err, p.adopt(name))
		}
	}
	var kept []savedResult
	for _, line := range p.lines {
		var k savedResult
		if err := json.Unmarshal(line, &k); err != nil {
			return kept, err
		}
		k.Result.Interrupted, k.Result.Aborted = k.Interrupted, k.Aborted
		kept = append(kept, k)
	}
	slices.SortFunc(kept, func(a, b savedResult) int { return cmp.Compare(a.Key.Task, b.Key.Task) })
	return kept, err
}

// adopt takes over the results in a file whose process has ended; files of
// others are left alone. Earlier releases made a file per result.
func (p *pending) adopt(name string) error {
	file, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	if ours, err := lock(file); !ours || err != nil {
		return err
	}
	body, err := io.ReadAll(file)
	if err != nil {
		return err
	}
	waiting := map[execution.AttemptKey][]byte{}
	for line := range bytes.Lines(body) {
		var k savedResult
		// A line that was cut off in the writing is none: its attempt was not over.
		switch err := json.Unmarshal(line, &k); {
		case err != nil || k.Key.Task == 0:
		case k.Done:
			delete(waiting, k.Key)
		case k.Result != nil:
			waiting[k.Key] = append(bytes.TrimSpace(line), '\n')
		}
	}
	for key, line := range waiting {
		if err := p.add(key, line); err != nil {
			return err
		}
	}
	return os.Remove(name)
}
