package httpx

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"strconv"
	"strings"
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
func TakesGzip(r *http.Request) bool {
	for part := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		coding, quality, _ := strings.Cut(part, ";")
		if strings.TrimSpace(coding) != "gzip" {
			continue
		}
		_, q, found := strings.Cut(quality, "=")
		value, err := strconv.ParseFloat(strings.TrimSpace(q), 64)
		return !found || err != nil || value > 0
	}
	return false
}
