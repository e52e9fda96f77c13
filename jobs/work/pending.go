package work

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"loom/app/execution"
	"loom/app/loom"
)

// pending keeps results on disk from the end of an attempt until they are
// recorded, so that a process that is killed in between loses no machine. An
// empty dir keeps nothing.
type pending struct{ dir string }

// keptResult is a result in its file. The JSON of a result leaves out how the
// attempt was cut short.
type keptResult struct {
	Key         execution.AttemptKey `json:"key"`
	Result      loom.TaskResult      `json:"result"`
	Interrupted bool                 `json:"interrupted,omitempty"`
	Aborted     bool                 `json:"aborted,omitempty"`
}

func openPending(dir string) (*pending, error) {
	if dir == "" {
		return &pending{}, nil
	}
	dir = filepath.Join(dir, ".pending")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the directory of unrecorded results: %w", err)
	}
	return &pending{dir}, nil
}

func (p *pending) path(key execution.AttemptKey) string {
	return filepath.Join(p.dir, fmt.Sprintf("%d-%d.json", key.Task, key.Attempt))
}

// keep writes a result, without secrets. Where a password is part of it, the
// file tells less than the truth: the attempt was interrupted, and its next try
// adopts the machine whose id is kept.
func (p *pending) keep(key execution.AttemptKey, r loom.TaskResult) error {
	if p.dir == "" {
		return nil
	}
	k := keptResult{Key: key, Result: r, Interrupted: r.Interrupted, Aborted: r.Aborted}
	k.Result.Stdout, k.Result.Stderr = "", ""
	if auth, ok := r.Result["ssh-auth"].(map[string]any); ok && holdsSecret(auth) {
		k.Result = loom.TaskResult{Status: -1, Message: "The process ended before the result was recorded."}
		if id, ok := r.Result["providerid"]; ok {
			k.Result.Result = map[string]any{"providerid": id}
		}
		k.Interrupted = true
	}
	body, err := json.Marshal(k)
	if err != nil {
		return fmt.Errorf("marshal the result of task %d: %w", key.Task, err)
	}
	return os.WriteFile(p.path(key), body, 0o600)
}

func holdsSecret(auth map[string]any) bool {
	for name := range auth {
		if name != "user" && name != "identityfile" && name != "port" {
			return true
		}
	}
	return false
}

// forget removes a result that was recorded or refused.
func (p *pending) forget(key execution.AttemptKey) error {
	if p.dir == "" {
		return nil
	}
	if err := os.Remove(p.path(key)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// left gives the results that an earlier process could not record. A file that
// was cut off in the writing is removed: its attempt was not over.
func (p *pending) left() ([]keptResult, error) {
	if p.dir == "" {
		return nil, nil
	}
	names, err := filepath.Glob(filepath.Join(p.dir, "*.json"))
	if err != nil {
		return nil, err
	}
	var kept []keptResult
	for _, name := range names {
		body, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		var k keptResult
		if json.Unmarshal(body, &k) != nil || k.Key.Task == 0 {
			if err := os.Remove(name); err != nil {
				return nil, err
			}
			continue
		}
		k.Result.Interrupted, k.Result.Aborted = k.Interrupted, k.Aborted
		kept = append(kept, k)
	}
	return kept, nil
}
