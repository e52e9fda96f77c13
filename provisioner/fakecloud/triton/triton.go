// Package triton is the Triton CloudAPI of fake clouds: the calls that Loom makes. It
// verifies the signatures of calls with the account's public key.
package triton

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"loom/provisioner/fakecloud"
)

// What the account has.
const (
	Login   = "lab"
	KeyName = "lab-key"
	// NextKeyName is the name of the key after Rotate.
	NextKeyName = "lab-key-2"
	Password    = "an-old-password"
	Package     = "g4-highcpu-1G"
	Image       = "7b5981c4-1889-11e7-b4c5-3f3bdfc9b88b"
)

// Operations.
const (
	Create = "POST /{login}/machines"
	List   = "GET /{login}/machines"
	Get    = "GET /{login}/machines/{id}"
	Delete = "DELETE /{login}/machines/{id}"

	account  = "GET /{login}"
	key      = "GET /{login}/keys/{name}"
	packages = "GET /{login}/packages"
	images   = "GET /{login}/images"
)

// Triton is the dialect.
type Triton struct {
	cloud *fakecloud.Cloud
	mux   *http.ServeMux
	// Key verifies signatures; Passwords allows Password instead.
	Key       crypto.PublicKey
	Passwords bool

	rotated atomic.Bool

	mu    sync.Mutex
	busy  int
	gone  bool
	extra []string
}

// New makes the dialect of an account with one key, package and image.
func New(public crypto.PublicKey) *Triton {
	t := &Triton{mux: http.NewServeMux(), Key: public}
	for _, op := range []string{Create, List, Get, Delete, account, key, packages, images} {
		t.mux.Handle(op, http.NotFoundHandler())
	}
	return t
}

// Rotate returns the account's key another name, NextKeyName.
func (t *Triton) Rotate() { t.rotated.Store(true) }

func (t *Triton) keyName() string {
	if t.rotated.Load() {
		return NextKeyName
	}
	return KeyName
}

// Attach tells the cloud.
func (t *Triton) Attach(c *fakecloud.Cloud) { t.cloud = c }

// Placing refuses the next n removals, as while a machine is being placed.
func (t *Triton) Placing(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.busy = n
}

// Forget makes machines that are gone answer 410, as newer versions do, instead of
// showing them as deleted.
func (t *Triton) Forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.gone = true
}

// Also adds addresses that every machine has, before its own.
func (t *Triton) Also(addresses ...string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.extra = addresses
}

// Operation is method and pattern.
func (t *Triton) Operation(r *fakecloud.Request) string {
	_, pattern := t.mux.Handler(r.Request)
	return pattern
}

var authorization = regexp.MustCompile(`^Signature keyId="/([^/"]+)/keys/([^/"]+)",algorithm="(rsa|ecdsa)-sha256",headers="\(request-target\) host date",signature="([A-Za-z0-9+/=]+)"$`)

// Allowed verifies the signature of a call.
func (t *Triton) Allowed(r *fakecloud.Request) *fakecloud.Answer {
	if login, password, ok := r.BasicAuth(); ok && t.Passwords && login == Login && password == Password {
		return nil
	}
	if why := t.verify(r); why != "" {
		refused := t.Refuse(http.StatusUnauthorized, "InvalidCredentials", why)
		return &refused
	}
	return nil
}

func (t *Triton) verify(r *fakecloud.Request) string {
	part := authorization.FindStringSubmatch(r.Header.Get("Authorization"))
	date, err := http.ParseTime(r.Header.Get("Date"))
	switch {
	case part == nil || err != nil:
		return "Authorization is required"
	case part[1] != Login || part[2] != t.keyName() || !strings.HasPrefix(r.URL.Path, "/"+Login):
		return "The credentials provided are invalid"
	case time.Since(date).Abs() > 5*time.Minute:
		return "Date is too far from now"
	case r.Header.Get("Accept-Version") == "":
		return "Accept-Version is missing"
	}
	signed, err := base64.StdEncoding.DecodeString(part[4])
	sum := sha256.Sum256([]byte("(request-target): " + strings.ToLower(r.Method) + " " + r.RequestURI + "\nhost: " + r.Host + "\ndate: " + r.Header.Get("Date")))
	ok := false
	switch public := t.Key.(type) {
	case *rsa.PublicKey:
		ok = part[3] == "rsa" && rsa.VerifyPKCS1v15(public, crypto.SHA256, sum[:], signed) == nil
	case *ecdsa.PublicKey:
		ok = part[3] == "ecdsa" && ecdsa.VerifyASN1(public, sum[:], signed)
	}
	if err != nil || !ok {
		return "The signature is not that of the key"
	}
	return ""
}

// Refuse answers with a code and a message.
func (t *Triton) Refuse(status int, code, message string) fakecloud.Answer {
	usual := map[int][2]string{
		400: {"InvalidArgument", "The request is invalid"}, 401: {"InvalidCredentials", "The credentials provided are invalid"},
		403: {"NotAuthorized", "Forbidden"}, 404: {"ResourceNotFound", "VM not found"}, 409: {"InvalidArgument", "The request cannot be carried out now"},
		410: {"ResourceNotFound", "VM is gone"}, 429: {"RequestThrottled", "Too many requests"}, 500: {"InternalError", "Unexpected error"},
		503: {"ServiceUnavailable", "Not now"},
	}
	if code == "" {
		code = usual[status][0]
	}
	if message == "" {
		message = usual[status][1]
	}
	return answer(status, map[string]any{"code": code, "message": message})
}

func answer(status int, body any) fakecloud.Answer {
	data, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	return fakecloud.Answer{Status: status, Type: "application/json", Body: data}
}

// Do carries a call out.
func (t *Triton) Do(op string, r *fakecloud.Request) fakecloud.Answer {
	last := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
	switch op {
	case Create:
		return t.create(r)
	case List:
		return t.list(r)
	case Get:
		m, ok := t.cloud.Look(last)
		t.mu.Lock()
		gone := t.gone
		t.mu.Unlock()
		if !ok {
			return t.Refuse(404, "", "")
		}
		if gone && m.State == fakecloud.Gone {
			return answer(410, t.vm(m))
		}
		return answer(200, t.vm(m))
	case Delete:
		return t.remove(last)
	case account:
		return answer(200, map[string]any{"id": "b89d9dd3-62ce-4f6f-eb0d-f78e57d515d9", "login": Login})
	case key:
		if last != t.keyName() {
			return t.Refuse(404, "", last+" does not exist")
		}
		return answer(200, map[string]any{"name": last})
	case packages:
		return answer(200, []any{map[string]any{"id": "14b6fade-d0f8-11e5-85c5-4ff7918ab5c1", "name": Package, "memory": 1024, "vcpus": 1}})
	case images:
		return answer(200, []any{map[string]any{"id": Image, "name": "debian-12", "version": "20240612"}})
	}
	return t.Refuse(404, "", "")
}

func (t *Triton) create(r *fakecloud.Request) fakecloud.Answer {
	var in map[string]string
	if err := json.Unmarshal(r.Body, &in); err != nil {
		return t.Refuse(400, "", "the body has to be an object of text")
	}
	image := "image"
	if strings.HasPrefix(r.Header.Get("Accept-Version"), "~6") {
		image = "dataset"
	}
	tags := map[string]string{}
	for name, value := range in {
		if tag, ok := strings.CutPrefix(name, "tag."); ok {
			tags[tag] = value
		}
	}
	switch {
	case in["package"] != Package:
		return t.Refuse(404, "", "package "+in["package"]+" does not exist")
	case in[image] != Image:
		return t.Refuse(404, "", image+" "+in[image]+" does not exist")
	}
	for _, m := range t.cloud.Machines() {
		if m.Name == in["name"] && m.State != fakecloud.Gone && m.Key != tags["loom-key"] {
			return t.Refuse(409, "", "name "+in["name"]+" is taken")
		}
	}
	m, err := t.cloud.Make(r.Context(), fakecloud.Machine{ID: "7f1f2a34-6c1e-4b8b-9a57-%012d", Key: tags["loom-key"], Name: in["name"],
		Flavor: in["package"], Image: in[image], Tags: tags, Request: in})
	if err != nil {
		return t.Refuse(500, "", err.Error())
	}
	m.State, m.Backing = fakecloud.Pending, fakecloud.Backing{} // whatever becomes of it is seen later
	return answer(201, t.vm(m))
}

func (t *Triton) list(r *fakecloud.Request) fakecloud.Answer {
	query := r.URL.Query()
	found := t.cloud.List(func(m fakecloud.Machine) bool {
		for name := range query {
			if tag, ok := strings.CutPrefix(name, "tag."); ok && m.Tags[tag] != query.Get(name) {
				return false
			}
		}
		return m.State != fakecloud.Gone
	})
	begin, _ := strconv.Atoi(query.Get("offset"))
	size, _ := strconv.Atoi(query.Get("limit"))
	if size == 0 || size > 1000 {
		size = 1000
	}
	begin = min(begin, len(found))
	all := []any{}
	for _, m := range found[begin:min(begin+size, len(found))] {
		all = append(all, t.vm(m))
	}
	return answer(200, all)
}

func (t *Triton) remove(id string) fakecloud.Answer {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.busy > 0 {
		t.busy--
		return t.Refuse(409, "", "the machine is being placed")
	}
	m, ok := t.cloud.Remove(id)
	switch {
	case !ok:
		return t.Refuse(404, "", "")
	case m.State == fakecloud.Gone:
		return t.Refuse(410, "", "")
	}
	return fakecloud.Answer{Status: 204}
}

func (t *Triton) vm(m fakecloud.Machine) any {
	states := map[fakecloud.State]string{fakecloud.Pending: "provisioning", fakecloud.Running: "running", fakecloud.Broken: "failed", fakecloud.Stopped: "stopped",
		fakecloud.Leaving: "stopping", fakecloud.Gone: "deleted"}
	ips := append([]string{}, t.extra...)
	for _, address := range []string{m.Backing.Public, m.Backing.Private} {
		if address != "" {
			ips = append(ips, address)
		}
	}
	tags := map[string]any{}
	for name, value := range m.Tags {
		tags[name] = value
		if n, err := strconv.Atoi(value); err == nil && fmt.Sprint(n) == value {
			tags[name] = n // CloudAPI makes numbers of them
		}
	}
	return map[string]any{"id": m.ID, "name": m.Name, "state": states[m.State], "ips": ips, "tags": tags, "created": m.Made.Format(time.RFC3339), "package": m.Flavor, "image": m.Image}
}
