package simcloud

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"
)

// ask is one request and its answer, for all of them.
type ask struct {
	Want   *Want         `json:"want,omitempty"`
	Query  *Query        `json:"query,omitempty"`
	ID     string        `json:"id,omitempty"`
	Linger time.Duration `json:"linger,omitempty"`
	Look   *Look         `json:"look,omitempty"`
	Effect *Effect       `json:"effect,omitempty"`
	Done   bool          `json:"done,omitempty"`
}

type answer struct {
	Machine  Machine   `json:"machine,omitzero"`
	Machines []Machine `json:"machines,omitempty"`
	There    bool      `json:"there,omitempty"`
	Sight    Sight     `json:"sight,omitzero"`
}

// Handler serves a cloud to other processes.
func Handler(c Cloud) http.Handler {
	mux := http.NewServeMux()
	serve := func(path string, do func(ctx context.Context, a ask) (answer, error)) {
		mux.HandleFunc("POST "+path, func(w http.ResponseWriter, r *http.Request) {
			var a ask
			if err := json.NewDecoder(r.Body).Decode(&a); err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			result, err := do(r.Context(), a)
			if err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
			json.NewEncoder(w).Encode(result) //nolint:errcheck // who asked may be dead
		})
	}
	serve("/create", func(ctx context.Context, a ask) (answer, error) {
		if a.Want == nil {
			return answer{}, fmt.Errorf("nothing is wanted")
		}
		m, err := c.Create(ctx, *a.Want)
		return answer{Machine: m}, err
	})
	serve("/find", func(ctx context.Context, a ask) (answer, error) {
		if a.Query == nil {
			a.Query = &Query{}
		}
		all, err := c.Find(ctx, *a.Query)
		return answer{Machines: all}, err
	})
	serve("/delete", func(ctx context.Context, a ask) (answer, error) {
		there, err := c.Delete(ctx, a.ID, a.Linger)
		return answer{There: there}, err
	})
	serve("/look", func(ctx context.Context, a ask) (answer, error) {
		if a.Look == nil {
			return answer{}, fmt.Errorf("no machine is named")
		}
		sight, err := c.Look(ctx, *a.Look)
		return answer{Sight: sight}, err
	})
	serve("/begin", func(ctx context.Context, a ask) (answer, error) {
		if a.Effect == nil {
			return answer{}, fmt.Errorf("no effect is named")
		}
		return answer{}, c.Begin(ctx, *a.Effect)
	})
	serve("/end", func(ctx context.Context, a ask) (answer, error) {
		if a.Effect == nil {
			return answer{}, fmt.Errorf("no effect is named")
		}
		return answer{}, c.End(ctx, *a.Effect, a.Done)
	})
	return mux
}

// client is a cloud that another process serves.
type client struct{ url string }

// connections are kept for all clients: each call of a plugin dials anew else.
var connections = &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 64, IdleConnTimeout: time.Minute}}

// Dial returns the cloud that answers at an address such as http://127.0.0.1:8000.
func Dial(url string) Cloud { return client{url} }

func (c client) call(ctx context.Context, path string, a ask) (answer, error) {
	var result answer
	body, err := json.Marshal(a)
	if err != nil {
		return result, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+path, bytes.NewReader(body))
	if err != nil {
		return result, fmt.Errorf("ask the simulator: %w", err)
	}
	reply, err := connections.Do(r)
	if err != nil {
		return result, fmt.Errorf("ask the simulator: %w", err)
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	if err != nil {
		return result, fmt.Errorf("ask the simulator: %w", err)
	}
	if reply.StatusCode != http.StatusOK {
		return result, fmt.Errorf("ask the simulator for %s: %s: %.200s", path, reply.Status, text)
	}
	if err := json.Unmarshal(text, &result); err != nil {
		return result, fmt.Errorf("read the simulator's answer: %w", err)
	}
	return result, nil
}

// Create makes a machine.
func (c client) Create(ctx context.Context, w Want) (Machine, error) {
	a, err := c.call(ctx, "/create", ask{Want: &w})
	return a.Machine, err
}

// Find gives machines.
func (c client) Find(ctx context.Context, q Query) ([]Machine, error) {
	a, err := c.call(ctx, "/find", ask{Query: &q})
	return a.Machines, err
}

// Delete makes a machine cease to be.
func (c client) Delete(ctx context.Context, id string, linger time.Duration) (bool, error) {
	a, err := c.call(ctx, "/delete", ask{ID: id, Linger: linger})
	return a.There, err
}

// Look looks at a machine.
func (c client) Look(ctx context.Context, look Look) (Sight, error) {
	a, err := c.call(ctx, "/look", ask{Look: &look})
	return a.Sight, err
}

// Begin notes an attempt at work.
func (c client) Begin(ctx context.Context, e Effect) error {
	_, err := c.call(ctx, "/begin", ask{Effect: &e})
	return err
}

// End notes that it is no longer. It is also asked for what was told to stop.
func (c client) End(ctx context.Context, e Effect, done bool) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	_, err := c.call(ctx, "/end", ask{Effect: &e, Done: done})
	return err
}
