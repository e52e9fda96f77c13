package ec2

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"

	"loom/provisioner/fakecloud"
)

var authorization = regexp.MustCompile(`^AWS4-HMAC-SHA256 Credential=([^/]+)/([0-9]{8})/([^/]+)/([^/]+)/aws4_request, ?SignedHeaders=([^,]+), ?Signature=([0-9a-f]{64})$`)

// signed returns the access key id that a request is signed with, and whether the
// signature (version 4) is that of the secret.
func signed(r *fakecloud.Request, secret string) (id string, ok bool) {
	part := authorization.FindStringSubmatch(r.Header.Get("Authorization"))
	if part == nil {
		return "", false
	}
	id, day, region, service, headers, signature := part[1], part[2], part[3], part[4], part[5], part[6]
	var canonical strings.Builder
	canonical.WriteString(r.Method + "\n" + r.URL.EscapedPath() + "\n" + r.URL.RawQuery + "\n")
	for name := range strings.SplitSeq(headers, ";") {
		value := r.Header.Get(name)
		switch name {
		case "host":
			value = r.Host
		case "content-length":
			value = r.Header.Get("Content-Length")
		}
		canonical.WriteString(name + ":" + strings.TrimSpace(value) + "\n")
	}
	canonical.WriteString("\n" + headers + "\n" + sum(string(r.Body)))
	toSign := "AWS4-HMAC-SHA256\n" + r.Header.Get("X-Amz-Date") + "\n" + strings.Join([]string{day, region, service, "aws4_request"}, "/") + "\n" + sum(canonical.String())
	key := []byte("AWS4" + secret)
	for _, text := range []string{day, region, service, "aws4_request", toSign} {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(text))
		key = mac.Sum(nil)
	}
	return id, hex.EncodeToString(key) == signature
}

func sum(text string) string {
	s := sha256.Sum256([]byte(text))
	return hex.EncodeToString(s[:])
}
