package api

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"

	"loom/app/httpx"
	"loom/app/lenient"
	"loom/app/loom"
	"loom/app/places"
)

// readBody reads a whole body whatever its content type, JSON as lenient.Strict has it.
// Invalid when it is too large or breaks off, Throttled when too much is decoded at this
// moment.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	return readLimited(w, r, httpx.MaxBody)
}

// readLimited is readBody with a limit of its own, in bytes.
func readLimited(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	r.Body = http.MaxBytesReader(w, r.Body, limit)
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, httpx.BodyError(err, "The body could not be read to its end.")
	}
	body = lenient.Strict(body)
	if err := takeShare(r.Context(), body, decodingWait); err != nil {
		return nil, err
	}
	return body, nil
}

// within gives the field errors of a use case the names that the fields have in a
// body where they are inside a member.
func within(member string, err error) error {
	var e *loom.Error
	if !errors.As(err, &e) || len(e.Fields) == 0 {
		return err
	}
	moved := *e
	moved.Fields = make([]loom.FieldError, len(e.Fields))
	for i, f := range e.Fields {
		moved.Fields[i] = loom.FieldError{Field: member + "." + f.Field, Message: f.Message}
	}
	return &moved
}

// done answers a success that has nothing to say: 200 with an empty body, the
// only success that old clients accept.
func done(w http.ResponseWriter) error {
	w.Header().Set("Content-Length", "0")
	w.WriteHeader(http.StatusOK)
	return nil
}

// answer sends v as JSON. Reads carry an opaque ETag, and who has that already
// gets 304.
func answer(w http.ResponseWriter, r *http.Request, v any) error {
	return answerTagged(w, r, v, "")
}

// answerStatus is answer with another status of success than 200.
func answerStatus(w http.ResponseWriter, status int, v any) error {
	var body bytes.Buffer
	encoder := json.NewEncoder(&body)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Type", mediaJSON)
	w.Header().Set("Content-Length", strconv.Itoa(body.Len()))
	w.WriteHeader(status)
	_, err := w.Write(body.Bytes())
	return err
}

// answerTagged is answer with an ETag of its own, quotes included.
func answerTagged(w http.ResponseWriter, r *http.Request, v any, etag string) error {
	var body bytes.Buffer
	encoder := json.NewEncoder(&body)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return err
	}
	if err := places.Hold(r.Context(), int64(body.Len())); err != nil {
		return err
	}
	return answerBytes(w, r, body.Bytes(), mediaJSON, etag)
}

// answerBytes is answerTagged for a body that is written already.
func answerBytes(w http.ResponseWriter, r *http.Request, body []byte, media, etag string) error {
	h := w.Header()
	if h.Get("Cache-Control") == "" {
		h.Set("Cache-Control", "no-store")
	}
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		if etag == "" {
			sum := sha256.Sum256(body)
			etag = `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`
		}
		h.Set("ETag", etag)
		if matches(r.Header.Get("If-None-Match"), etag) {
			w.WriteHeader(http.StatusNotModified)
			return nil
		}
	}
	h.Set("Content-Type", media)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	_, err := w.Write(body)
	return err
}

// matches reads an If-None-Match header (RFC 9110, 13.1.2).
func matches(header, etag string) bool {
	for _, tag := range strings.Split(header, ",") {
		tag = strings.TrimSpace(tag)
		if tag == "*" || strings.TrimPrefix(tag, "W/") == etag {
			return true
		}
	}
	return false
}
