package httpx

import (
	"bytes"
	"compress/gzip"
	"net/http"

	"loom/static"
)

// Gzipped compresses what is kept to be sent often and holds no secret.
func Gzipped(body []byte) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	z.Write(body) //nolint:errcheck // memory
	z.Close()     //nolint:errcheck // same
	return b.Bytes()
}

// TakesGzip reports whether a client takes compressed answers.
func TakesGzip(r *http.Request) bool { return static.AcceptsGzip(r.Header.Get("Accept-Encoding")) }
