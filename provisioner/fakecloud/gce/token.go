package gce

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"time"

	"loom/provisioner/fakecloud"
)

// Email of the service account.
const Email = "loom@lab-project-7.iam.gserviceaccount.com"

const keyID = "5f0e8c1a"

// The account's key, and another that it does not have; made once, since that takes
// its time.
var (
	own   = sync.OnceValue(newKey)
	next  = sync.OnceValue(newKey)
	other = sync.OnceValue(newKey)
)

func newKey() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
}

// Key returns the service account's key as Google's file of type JSON.
func (g *GCE) Key() []byte { return g.file(own()) }

// Rotate replaces the account's key by another one, and gives that.
func (g *GCE) Rotate() []byte {
	g.rotated.Store(true)
	g.mu.Lock()
	defer g.mu.Unlock()
	for token := range g.tokens {
		g.tokens[token] = false
	}
	return g.file(next())
}

func (g *GCE) key() *rsa.PrivateKey {
	if g.rotated.Load() {
		return next()
	}
	return own()
}

// WrongKey returns a key that the account does not have.
func (g *GCE) WrongKey() []byte { return g.file(other()) }

func (g *GCE) file(key *rsa.PrivateKey) []byte {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		panic(err)
	}
	data, err := json.Marshal(map[string]string{"type": "service_account", "project_id": Project, "private_key_id": keyID, "client_email": Email,
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})), "token_uri": g.cloud.URL() + "/token"})
	if err != nil {
		panic(err)
	}
	return data
}

// token returns an access token for a request that the account's key signed.
func (g *GCE) token(r *fakecloud.Request) fakecloud.Answer {
	form, err := url.ParseQuery(string(r.Body))
	refuse := func(why string) fakecloud.Answer {
		return answer(400, map[string]string{"error": "invalid_grant", "error_description": why})
	}
	if err != nil || form.Get("grant_type") != "urn:ietf:params:oauth:grant-type:jwt-bearer" {
		return answer(400, map[string]string{"error": "unsupported_grant_type"})
	}
	signed, signature, _ := cutLast(form.Get("assertion"))
	raw, err := base64.RawURLEncoding.DecodeString(signature)
	sum := sha256.Sum256([]byte(signed))
	if err != nil || rsa.VerifyPKCS1v15(&g.key().PublicKey, crypto.SHA256, sum[:], raw) != nil {
		return refuse("Invalid JWT Signature.")
	}
	_, middle, _ := strings.Cut(signed, ".")
	body, err := base64.RawURLEncoding.DecodeString(middle)
	var claims struct {
		Iss, Scope, Aud string
		Iat, Exp        int64
	}
	if err != nil || json.Unmarshal(body, &claims) != nil {
		return refuse("Invalid JWT.")
	}
	now := time.Now().Unix()
	switch {
	case claims.Iss != Email:
		return refuse("Invalid grant: account not found")
	case claims.Aud != g.cloud.URL()+"/token" || !strings.Contains(claims.Scope, "/auth/compute"):
		return refuse("Invalid audience or scope")
	case claims.Exp < now || claims.Iat > now+60 || claims.Exp-claims.Iat > 3660:
		return refuse("Token must be a short-lived token")
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	token := fmt.Sprintf("ya29.made-up-%d", len(g.tokens)+1)
	g.tokens[token] = true
	return answer(200, map[string]any{"access_token": token, "expires_in": 3599, "token_type": "Bearer"})
}

// Expire ends all tokens that there are.
func (g *GCE) Expire() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for token := range g.tokens {
		g.tokens[token] = false
	}
}

func cutLast(text string) (before, after string, ok bool) {
	if n := strings.LastIndexByte(text, '.'); n >= 0 {
		return text[:n], text[n+1:], true
	}
	return text, "", false
}
