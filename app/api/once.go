package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"time"

	"loom/app/account"
	"loom/app/httpx"
	"loom/app/loom"
)

// onceTimeout bounds keeping or giving back a key after the client is gone.
const onceTimeout = 10 * time.Second

const (
	// maxKept is the longest answer that is kept as it is.
	maxKept = 64 << 10
	// maxShortMember is the longest member of an answer that is kept short, as JSON.
	maxShortMember = 100
	// keptShort is a member of such an answer.
	keptShort = `"The first answer was too long to be kept. This is its beginning; read the rest at its id."`
)

// kept records an answer while it is sent, as far as it is needed.
type kept struct {
	http.ResponseWriter
	status int
	body   bytes.Buffer
}

// WriteHeader notes the status.
func (k *kept) WriteHeader(status int) {
	k.status = status
	k.ResponseWriter.WriteHeader(status)
}

// Write notes the body.
func (k *kept) Write(p []byte) (int, error) {
	if k.status == 0 {
		k.status = http.StatusOK
	}
	k.body.Write(p[:min(len(p), maxKept+1-k.body.Len())])
	return k.ResponseWriter.Write(p)
}

// once makes a handler honour an Idempotency-Key: the same
// request with the same key gets the first answer again, without the secrets
// that are shown once; of a long one what tells where to read it. A request that fails gives its key back.
func (a *api) once(next httpx.ActorHandler) httpx.ActorHandler {
	return func(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
		keys := r.Header.Values("Idempotency-Key")
		if len(keys) == 0 {
			return next(w, r, actor)
		}
		key := keys[0]
		body, err := readBody(w, r)
		if err != nil {
			return err
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		first, err := a.Accounts.BeginOnce(r.Context(), actor, key, r.URL.Path, body)
		if err != nil {
			return err
		}
		if first != nil {
			if err := a.stillShown(r, actor, first.Response); err != nil {
				return err
			}
			w.Header().Set("Idempotency-Replayed", "true")
			if len(first.Response) == 0 {
				return done(w)
			}
			if bytes.Contains(first.Response, []byte(keptShort)) {
				w.Header().Set("Idempotency-Shortened", "true")
			}
			w.Header().Set("Content-Type", mediaJSON)
			w.WriteHeader(first.Status)
			_, err := w.Write(first.Response)
			return err
		}
		// What became of the request is noted even when its client left meanwhile.
		ctx, stop := context.WithTimeout(context.WithoutCancel(r.Context()), onceTimeout)
		defer stop()
		k := &kept{ResponseWriter: w}
		finished := false
		defer func() {
			if !finished { // failed, or panicked
				if err := a.Accounts.ForgetOnce(ctx, actor, key); err != nil {
					a.Log.Warn("an idempotency key could not be given back", "request_id", httpx.RequestID(r), "error", err.Error())
				}
			}
		}()
		err = next(k, r, actor)
		if k.status != http.StatusOK {
			return err
		}
		// The work is done, even if sending the answer failed.
		finished = true
		if failed := a.Accounts.FinishOnce(ctx, actor, key, k.answer()); failed != nil {
			a.Log.Warn("an answer could not be kept for its idempotency key", "request_id", httpx.RequestID(r), "error", failed.Error())
		}
		return err
	}
}

// answer is what is kept.
func (k *kept) answer() account.Answer {
	a := account.Answer{Status: k.status, Short: shortened(k.body.Bytes())}
	if a.Response = a.Short; k.body.Len() <= maxKept {
		a.Response = withoutSecret(k.body.Bytes())
	}
	if len(a.Response) < len(a.Short) {
		a.Short = a.Response
	}
	return a
}

// shortened gives what is kept of an answer, or of its beginning, that is too long: its
// short members, such as its id, and a sentence.
func shortened(body []byte) []byte {
	short := map[string]json.RawMessage{"detail": json.RawMessage(keptShort)}
	d := json.NewDecoder(bytes.NewReader(body))
	if start, err := d.Token(); err == nil && start == json.Delim('{') {
		for d.More() {
			name, err := d.Token()
			if err != nil {
				break
			}
			var value json.RawMessage
			if d.Decode(&value) != nil || d.InputOffset() == int64(len(body)) {
				break // the answer goes on
			}
			if name, ok := name.(string); ok && len(name)+len(value) <= maxShortMember && value[0] != '{' && value[0] != '[' && !slices.Contains(shownOnce, name) {
				short[name] = value
			}
		}
	}
	out, err := json.Marshal(short)
	if err != nil {
		return nil // it was JSON
	}
	return append(out, '\n')
}

// stillShown returns NotFound where a kept answer is about a cluster that the actor may
// not see now.
func (a *api) stillShown(r *http.Request, actor loom.Actor, body []byte) error {
	var about struct {
		Kind      loom.ChangeKind
		ClusterID string
	}
	if json.Unmarshal(body, &about) != nil || about.ClusterID == "" || about.Kind == loom.ChangeCreate {
		return nil
	}
	err := a.Clusters.MaySeeTopic(r.Context(), actor, "cluster:"+about.ClusterID)
	if errors.Is(err, loom.NotFound) {
		return loom.NewError(loom.NotFound, "There is no cluster %s.", about.ClusterID)
	}
	return err
}

// shownOnce are the members of answers that are shown this once.
var shownOnce = []string{"secret", "password"}

// withoutSecret leaves out the members that are shown only once.
func withoutSecret(body []byte) []byte {
	var members map[string]json.RawMessage
	if json.Unmarshal(body, &members) != nil {
		return body
	}
	n := len(members)
	for _, name := range shownOnce {
		delete(members, name)
	}
	if len(members) == n {
		return body
	}
	out, err := json.Marshal(members)
	if err != nil {
		return nil // never keep what may hold a secret
	}
	return append(out, '\n')
}
