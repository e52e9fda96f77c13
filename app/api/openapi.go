package api

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // the document
	"encoding/base64"
	"encoding/json"
	"net/http"
	"sync"

	"loom/app/httpx"
	"loom/app/loom"
)

// document is the OpenAPI document as it is served. TestDocumentIsCurrent generates it from
// the table of routes and the types of the bodies, and compares.
//
//go:embed openapi.json
var document []byte

// Document gives the OpenAPI document, for the page that shows it.
func Document() []byte { return document }

// served is the document as it is sent, made once: anybody may ask for it.
var served = sync.OnceValue(func() (s struct {
	plain, zipped []byte
	etag          string
}) {
	var b bytes.Buffer
	json.Compact(&b, document) //nolint:errcheck // a test reads it
	s.plain = append(b.Bytes(), '\n')
	s.zipped = httpx.Gzipped(s.plain)
	s.etag = etagOf(s.plain)
	return s
})

func (a *api) openapi(w http.ResponseWriter, r *http.Request, _ loom.Actor) error {
	s := served()
	if httpx.TakesGzip(r) {
		w.Header().Set("Content-Encoding", "gzip")
		return answerBytes(w, r, s.zipped, mediaJSON, s.etag)
	}
	return answerBytes(w, r, s.plain, mediaJSON, s.etag)
}

// etagOf makes the tag of a body.
func etagOf(body []byte) string {
	sum := sha256.Sum256(body)
	return `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`
}
