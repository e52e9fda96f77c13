package google

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/oauth2"
	oauth "golang.org/x/oauth2/google"
	"golang.org/x/oauth2/jwt"
	"google.golang.org/api/compute/v1"

	"loom/app/loom"
	"loom/provisioner/provider"
	"loom/provisioner/provider/cloud"
	"loom/provisioner/remote"
	"loom/provisioner/resource"
)

// keySize is the most that is read of a key, in bytes.
const keySize = 1 << 20

// keyOf reads the key of the service account, whose tokens may be sent to endpoint. What
// is wrong with it is said without quoting it.
func keyOf(s *cloud.Session, files, endpoint string) (*jwt.Config, error) {
	name := path.Base(filepath.ToSlash(s.Fields.Text("api_key_resource")))
	missing := cloud.Errorf(cloud.Credentials, "API key resource “%s” (provider field api_key_resource) is not there; upload the JSON key of the service account under Files and release it", name)
	switch {
	case name == "." || name == "/":
		return nil, cloud.Errorf(cloud.Credentials, "provider field api_key_resource is empty; name a resource of type api_keys with the JSON key of the service account")
	}
	data, err := resource.Read(files, "api_keys", name, keySize)
	if errors.Is(err, resource.ErrNotThere) {
		return nil, missing
	}
	if err != nil {
		return nil, cloud.Errorf(cloud.Credentials, "API key resource “%s” cannot be read", name)
	}
	unusable := cloud.Errorf(cloud.Credentials, "API key resource “%s” is no key of a service account; make one of type JSON at Google and upload that file", name)
	key, err := oauth.JWTConfigFromJSON(data, compute.ComputeScope)
	if err != nil {
		return nil, unusable
	}
	if _, err := ssh.ParseRawPrivateKey(key.PrivateKey); err != nil {
		return nil, unusable
	}
	if key.Email == "" {
		key.Email = s.Fields.Text("google_client_email")
	}
	if key.Email == "" {
		return nil, cloud.Errorf(cloud.Credentials, "API key resource “%s” names no service account; fill in google_client_email", name)
	}
	// Where the signed request for a token goes is what the file says.
	if key.TokenURL, err = s.CheckURL("api_key_resource (its token_uri)", key.TokenURL); err != nil {
		return nil, err
	}
	if !names(data, key.TokenURL, endpoint) {
		return nil, cloud.Errorf(cloud.Refused, "provider field endpoint_url is an address that the API key resource “%s” does not name, so it gets no tokens of that key; leave it empty, or upload the key again with a member \"endpoint_url\" that is this address", name)
	}
	return key, nil
}

// names reports whether a key names the address of an API: it is Google's own, or one of
// the universe_domain or the endpoint_url in the file, or the one that makes the tokens.
// Who writes a provider does not know the key that it names, so it is not he who decides
// where its tokens go.
func names(data []byte, tokens, endpoint string) bool {
	var key struct {
		Universe string `json:"universe_domain"`
		Endpoint string `json:"endpoint_url"`
	}
	to, err := url.Parse(endpoint)
	if err != nil || json.Unmarshal(data, &key) != nil {
		return false
	}
	for _, domain := range []string{"googleapis.com", strings.Trim(key.Universe, ".")} {
		if domain != "" && to.Scheme == "https" && strings.HasSuffix("."+strings.ToLower(to.Hostname()), "."+strings.ToLower(domain)) {
			return true
		}
	}
	for _, address := range []string{tokens, key.Endpoint} {
		if u, err := url.Parse(address); err == nil && u.Scheme == to.Scheme && strings.EqualFold(u.Host, to.Host) {
			return true
		}
	}
	return false
}

// authorized adds an access token to calls, which all tasks with the same key share.
type authorized struct {
	http.RoundTripper
	session *cloud.Session
	key     *jwt.Config

	mu sync.Mutex
	// token is the one in use, asked the one that this task asked for.
	token, asked *oauth2.Token
}

// tokenError is trouble on the way to a token: the call itself was not made.
type tokenError struct{ error }

// Unwrap returns the trouble.
func (e tokenError) Unwrap() error { return e.error }

// RoundTrip adds the header to a copy, as its contract asks for.
func (a *authorized) RoundTrip(r *http.Request) (*http.Response, error) {
	for again := true; ; again = false {
		token, err := a.get(r.Context())
		if err != nil {
			if r.Body != nil {
				_ = r.Body.Close()
			}
			return nil, tokenError{err}
		}
		r = r.Clone(r.Context())
		token.SetAuthHeader(r)
		answer, err := a.RoundTripper.RoundTrip(r)
		if err != nil || answer.StatusCode != http.StatusUnauthorized || !again || !a.drop(token) || r.Body != nil && r.GetBody == nil {
			return answer, err
		}
		// The token of an earlier task does not hold any longer.
		_ = answer.Body.Close()
		if r.Body != nil {
			if r.Body, err = r.GetBody(); err != nil {
				return nil, err
			}
		}
	}
}

// drop returns a token up that was refused. It reports false for one that was asked for
// by this task: another one would be refused too.
func (a *authorized) drop(token *oauth2.Token) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	cloud.Forget(a.session, a.about(), token)
	if a.token == token {
		a.token = nil
	}
	return token != a.asked
}

func (a *authorized) about() []string {
	return []string{"token", a.key.TokenURL, a.key.Email, a.key.Subject, a.key.PrivateKeyID, string(a.key.PrivateKey)}
}

// get returns a token that holds. A probe asks for one of its own, once.
func (a *authorized) get(ctx context.Context) (*oauth2.Token, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.token.Valid() {
		return a.token, nil
	}
	token, err := cloud.Shared(ctx, a.session, a.about(), func(ctx context.Context) (*oauth2.Token, time.Time, error) {
		token, err := a.ask(ctx)
		if err != nil {
			return nil, time.Time{}, err
		}
		a.asked = token
		return token, token.Expiry, nil
	})
	if err != nil {
		return nil, err
	}
	a.token = token
	return token, nil
}

// ask asks for a token. A call's context ends the wait for it, which the library does
// not do by itself.
func (a *authorized) ask(ctx context.Context) (*oauth2.Token, error) {
	var lost error
	client := &http.Client{Transport: until{a.RoundTripper, ctx, &lost},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	token, err := a.key.TokenSource(context.WithValue(ctx, oauth2.HTTPClient, client)).Token()
	if lost != nil {
		return nil, lost // the library keeps the text of it only
	}
	if err != nil {
		return nil, err
	}
	if token.AccessToken == "" {
		return nil, errors.New("the answer has no access token")
	}
	return token, nil
}

// until makes calls that end with a context, and notes the trouble of the last one.
type until struct {
	http.RoundTripper
	ctx  context.Context //nolint:containedctx // it is that of the one call this is made for
	lost *error
}

// RoundTrip makes the call.
func (u until) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := u.RoundTripper.RoundTrip(r.WithContext(u.ctx))
	*u.lost = err
	return response, err
}

// publicKeys returns the lines of the metadata ssh-keys that let Loom in:
// "user:public key". Errors are those of remote.TargetOf.
func publicKeys(ctx context.Context, spec *loom.TaskSpec) (string, error) {
	as := *spec
	as.Results = map[string]any{"ssh-auth": cloud.Auth(spec, "")}
	target, err := remote.TargetOf(&as, provider.EnvOf(ctx).Files)
	if err != nil {
		return "", err
	}
	lines := ""
	for _, pem := range target.Keys {
		signer, err := ssh.ParsePrivateKey([]byte(pem.Reveal()))
		var locked *ssh.PassphraseMissingError
		if errors.As(err, &locked) {
			signer, err = ssh.ParsePrivateKeyWithPassphrase([]byte(pem.Reveal()), []byte(target.Passphrase.Reveal()))
		}
		if err != nil {
			return "", &remote.Error{Kind: remote.ErrCredentials,
				Text: "the SSH key of the provider cannot be read; give a private key in PEM form, and its passphrase in the field ssh_key_passphrase if it has one"}
		}
		lines += fmt.Sprintf("%s:%s", target.User, ssh.MarshalAuthorizedKey(signer.PublicKey()))
	}
	return lines, nil
}
