package loom

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
	"time"
)

// TestFormats: addresses are HTTPS unless the operator allows plain HTTP, authorities are
// certificates and nothing else; nothing at all is always taken.
func TestFormats(t *testing.T) {
	t.Parallel()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	made := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	raw, err := x509.CreateCertificate(rand.Reader, made, made, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	block := func(kind string) string { return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: raw})) }
	for _, c := range []struct {
		format string
		value  any
		plain  bool
		says   string
	}{
		{FormatURL, nil, false, ""}, {FormatURL, " ", false, ""}, {FormatURL, "https://cloud.example:5000/v3", false, ""}, {FormatURL, "http://cloud.example", true, ""},
		{FormatURL, "http://cloud.example", false, "Use https://"}, {FormatURL, "http://127.0.0.1:5000", false, "Use https://"}, {FormatURL, "cloud.example", true, "Enter a URL"},
		{FormatURL, "ftp://cloud.example", true, "Enter a URL"}, {FormatURL, "https://u:p@cloud.example", false, "without user"}, {FormatURL, 7.0, false, "Enter a URL"},
		{FormatPEM, "", false, ""}, {FormatPEM, block("CERTIFICATE"), false, ""}, {FormatPEM, "\n" + block("CERTIFICATE") + "\n\n" + block("CERTIFICATE"), false, ""},
		{FormatPEM, "hello", false, "in PEM form"}, {FormatPEM, block("PRIVATE KEY"), false, "certificates only"}, {FormatPEM, block("CERTIFICATE") + "hello", false, "in PEM form"},
		{"", "anything", false, ""},
	} {
		got := FieldSchema{Format: c.format}.CheckFormat(c.value, c.plain)
		if (got == "") != (c.says == "") || !strings.Contains(got, c.says) {
			t.Errorf("%s %.40v: %q", c.format, c.value, got)
		}
	}
}
