// Package stack is the OpenStack of fake clouds, and the Rackspace: the calls of
// Keystone, Nova, Neutron and Glance that Loom makes.
package stack

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path"
	"strings"
	"sync"
	"sync/atomic"

	"loom/provisioner/fakecloud"
)

// Names of what the account has.
const (
	User     = "loom"
	Password = "keystone-pa55word"
	// NextPassword is the password, or the API key of Rackspace, after Rotate.
	NextPassword = "n3xt-0123456789abcdef0123456789"
	Project      = "lab"
	ProjectID    = "5f0e8c1a2b7d5a3c9e4f1d6b8a7c9e02"
	Region       = "RegionOne"
	// AppID and AppSecret are an application credential.
	AppID     = "a1b2c3d4"
	AppSecret = "application-s3cret"
	// APIKey is that of Rackspace, where User and Region are others.
	APIKey          = "0123456789abcdef0123456789abcdef"
	RackspaceRegion = "DFW"

	KeyPair = "lab"
	Flavor  = "m1.small"
	// FlavorName and ImageName are what people call them.
	FlavorName = "small"
	ImageName  = "debian-12"
	Image      = "b8d0c9a2-51f7-4e0e-bf7a-9a1e6f1c7d11"
	Group      = "default"
	Zone       = "nova"
	// Dark is a zone that is not available.
	Dark = "dark"
	// LabNet and StorageNet are networks of the project, External the one of floating
	// addresses.
	LabNet       = "11111111-aaaa-4aaa-8aaa-000000000001"
	StorageNet   = "11111111-aaaa-4aaa-8aaa-000000000002"
	External     = "11111111-aaaa-4aaa-8aaa-000000000009"
	ExternalName = "ext-net"
)

// Operations.
const (
	SignIn    = "POST /v3/auth/tokens"
	SignInV2  = "POST /v2.0/tokens"
	Create    = "POST /compute/v2.1/servers"
	List      = "GET /compute/v2.1/servers/detail"
	Get       = "GET /compute/v2.1/servers/{id}"
	Delete    = "DELETE /compute/v2.1/servers/{id}"
	Action    = "POST /compute/v2.1/servers/{id}/action"
	Keys      = "GET /compute/v2.1/os-keypairs"
	Flavors   = "GET /compute/v2.1/flavors/detail"
	OneFlavor = "GET /compute/v2.1/flavors/{id}"
	Zones     = "GET /compute/v2.1/os-availability-zone"
	Limits    = "GET /compute/v2.1/limits"
	Images    = "GET /image/v2/images"
	OneImage  = "GET /image/v2/images/{id}"
	Floats    = "GET /network/v2.0/floatingips"
	Float     = "POST /network/v2.0/floatingips"
	GetFloat  = "GET /network/v2.0/floatingips/{id}"
	SetFloat  = "PUT /network/v2.0/floatingips/{id}"
	Unfloat   = "DELETE /network/v2.0/floatingips/{id}"
	Ports     = "GET /network/v2.0/ports"
	Port      = "GET /network/v2.0/ports/{id}"
	Networks  = "GET /network/v2.0/networks"
	Network   = "GET /network/v2.0/networks/{id}"
	Groups    = "GET /network/v2.0/security-groups"
)

// Stack is the dialect.
type Stack struct {
	cloud     *fakecloud.Cloud
	rackspace bool
	rotated   atomic.Bool
	mux       *http.ServeMux

	// PageSize is the most servers that a listing gives at once, 0 for all. The
	// addresses of next pages lead nowhere, as behind a bad proxy.
	PageSize int
	// Hidden gives machines private addresses only, so that they need floating ones.
	Hidden bool
	// FloatingAddress is the one of all floating addresses, "" for one each.
	FloatingAddress string
	// Thieves is how often somebody else takes a floating address a moment after it was
	// given to a machine; Quota the most floating addresses that can be made.
	Thieves, Quota int
	// Connect is what RackConnect says, a word for each look at an active machine; the
	// last one stays.
	Connect []string

	// Regions that the catalog names; in all but Region there is nothing.
	Regions []string
	// UserDomain and ProjectDomain are the names of those of user and project.
	UserDomain, ProjectDomain string
	// PublicKey of the key pair, as in authorized_keys; its Fingerprint where Nova tells no
	// more.
	PublicKey, Fingerprint string
	// Instances, Cores and RAM are how much of the project's limits is used, and the limits;
	// -1 for none.
	Instances, Cores, RAM [2]int

	mu     sync.Mutex
	tokens map[string]bool
	issued int
	floats []*Address
	made   int
}

// New makes the dialect of an OpenStack.
func New() *Stack { return fresh(false) }

// NewRackspace makes the dialect of the Rackspace cloud.
func NewRackspace() *Stack { return fresh(true) }

func fresh(rackspace bool) *Stack {
	s := &Stack{rackspace: rackspace, mux: http.NewServeMux(), tokens: map[string]bool{}, Quota: 100,
		Regions: []string{Region}, UserDomain: "Default", ProjectDomain: "Default", Instances: [2]int{1, 10}, Cores: [2]int{2, 20}, RAM: [2]int{2048, -1}}
	ops := []string{Create, List, Get, Delete, Action, Keys, Flavors, OneFlavor, Images, OneImage, Limits}
	if rackspace {
		ops = append(ops, SignInV2)
	} else {
		ops = append(ops, SignIn, Zones, Floats, Float, GetFloat, SetFloat, Unfloat, Ports, Port, Networks, Network, Groups)
	}
	for _, op := range ops {
		s.mux.Handle(op, http.NotFoundHandler())
	}
	return s
}

// Rotate replaces the password, or the API key of Rackspace, by NextPassword. Tokens that
// were given for the one before are over.
func (s *Stack) Rotate() {
	s.rotated.Store(true)
	s.Expire()
}

func (s *Stack) password() string {
	switch {
	case s.rotated.Load():
		return NextPassword
	case s.rackspace:
		return APIKey
	}
	return Password
}

// Attach tells the cloud.
func (s *Stack) Attach(c *fakecloud.Cloud) { s.cloud = c }

// Operation is method and pattern.
func (s *Stack) Operation(r *fakecloud.Request) string {
	_, pattern := s.mux.Handler(r.Request)
	return pattern
}

// Allowed looks at the token.
func (s *Stack) Allowed(r *fakecloud.Request) *fakecloud.Answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	if op := s.Operation(r); op == SignIn || op == SignInV2 || s.tokens[r.Header.Get("X-Auth-Token")] {
		return nil
	}
	refused := s.Refuse(http.StatusUnauthorized, "", "")
	return &refused
}

// Expire ends all tokens that there are.
func (s *Stack) Expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tokens = map[string]bool{}
}

// Refuse answers as Nova does.
func (*Stack) Refuse(status int, code, message string) fakecloud.Answer {
	usual := map[int][2]string{
		400: {"badRequest", "Bad request."}, 401: {"unauthorized", "The request you have made requires authentication."},
		403: {"forbidden", "Policy doesn't allow this."}, 404: {"itemNotFound", "The resource could not be found."},
		409: {"conflictingRequest", "Conflict."}, 413: {"overLimit", "This request was rate-limited."}, 429: {"tooManyRequests", "Too many requests."},
		500: {"computeFault", "Unexpected API Error."}, 503: {"serviceUnavailable", "The service is unavailable."},
	}
	if code == "" {
		code = usual[status][0]
	}
	if message == "" {
		message = usual[status][1]
	}
	return answer(status, map[string]any{code: map[string]any{"message": message, "code": status}})
}

func answer(status int, body any) fakecloud.Answer {
	data, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	return fakecloud.Answer{Status: status, Type: "application/json", Body: data}
}

type object = map[string]any

// Do carries a call out.
func (s *Stack) Do(op string, r *fakecloud.Request) fakecloud.Answer {
	id := path.Base(r.URL.Path)
	switch op {
	case SignIn:
		return s.signIn(r)
	case SignInV2:
		return s.signInV2(r)
	case Create:
		return s.create(r)
	case List:
		return s.list(r)
	case Get:
		return s.get(id)
	case Delete:
		if m, ok := s.cloud.Remove(id); !ok || m.State == fakecloud.Gone {
			return s.Refuse(404, "", "Instance "+id+" could not be found.")
		}
		return fakecloud.Answer{Status: 204}
	case Action:
		return s.act(path.Base(path.Dir(r.URL.Path)), string(r.Body))
	case Keys:
		return answer(200, object{"keypairs": []any{object{"keypair": object{"name": "other"}},
			object{"keypair": object{"name": KeyPair, "public_key": s.PublicKey, "fingerprint": s.Fingerprint}}}})
	case Zones:
		zone := func(name string, available bool) any {
			return object{"zoneName": name, "zoneState": object{"available": available}, "hosts": nil}
		}
		return answer(200, object{"availabilityZoneInfo": []any{zone(Zone, true), zone(Dark, false)}})
	case Limits:
		return answer(200, object{"limits": object{"rate": []any{}, "absolute": object{"totalInstancesUsed": s.Instances[0], "maxTotalInstances": s.Instances[1],
			"totalCoresUsed": s.Cores[0], "maxTotalCores": s.Cores[1], "totalRAMUsed": s.RAM[0], "maxTotalRAMSize": s.RAM[1]}}})
	case Flavors:
		return answer(200, object{"flavors": []any{object{"id": "m1.large", "name": "large", "ram": 8192, "vcpus": 4, "disk": 80},
			object{"id": Flavor, "name": FlavorName, "ram": 2048, "vcpus": 1, "disk": 20}}})
	case OneFlavor:
		if id != Flavor {
			return s.Refuse(404, "", "Flavor "+id+" could not be found.")
		}
		return answer(200, object{"flavor": object{"id": Flavor, "name": FlavorName, "ram": 2048, "vcpus": 1, "disk": 20}})
	case Images:
		images := []any{object{"id": Image, "name": ImageName, "status": "active"}}
		if name := r.URL.Query().Get("name"); name != "" && name != ImageName {
			images = []any{}
		}
		return answer(200, object{"images": images})
	case OneImage:
		if id != Image {
			return answer(404, object{"message": "No image found with ID " + id, "code": "404 Not Found"})
		}
		return answer(200, object{"id": Image, "name": ImageName, "status": "active"})
	}
	return s.neutron(op, id, r)
}

// issue makes a token.
func (s *Stack) issue() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.issued++
	token := fmt.Sprintf("gAAAAAB-token-%d", s.issued)
	s.tokens[token] = true
	return token
}

// signIn is Keystone, version 3.
func (s *Stack) signIn(r *fakecloud.Request) fakecloud.Answer {
	type named struct{ ID, Name string }
	var in struct {
		Auth struct {
			Identity struct {
				Methods  []string
				Password struct {
					User struct {
						Name, Password string
						Domain         named
					}
				}
				App struct{ ID, Secret string } `json:"application_credential"`
			}
			Scope struct {
				Project struct {
					ID, Name string
					Domain   named
				}
			}
		}
	}
	if err := json.Unmarshal(r.Body, &in); err != nil || len(in.Auth.Identity.Methods) != 1 {
		return s.keystone(400, "Expecting to find valid JSON in request body.")
	}
	user, project := in.Auth.Identity.Password.User, in.Auth.Scope.Project
	switch in.Auth.Identity.Methods[0] {
	case "password":
		known := user.Name == User && user.Password == s.password() && user.Domain.Name == s.UserDomain
		if scoped := project.ID == ProjectID || project.Name == Project && project.Domain.Name == s.ProjectDomain; !known || !scoped {
			return s.keystone(401, "The request you have made requires authentication.")
		}
	case "application_credential":
		if in.Auth.Identity.App.ID != AppID || in.Auth.Identity.App.Secret != AppSecret {
			return s.keystone(401, "The request you have made requires authentication.")
		}
	default:
		return s.keystone(400, "Attempted to authenticate with an unsupported method.")
	}
	service := func(kind, name, where string) any {
		endpoint := func(region, face, url string) any {
			return object{"id": "e", "interface": face, "region": region, "region_id": region, "url": url}
		}
		endpoints := []any{endpoint(Region, "internal", "http://internal.invalid/")}
		for _, region := range s.Regions {
			at := "http://" + strings.ToLower(region) + ".invalid/"
			if region == Region {
				at = s.cloud.URL() + where
			}
			endpoints = append(endpoints, endpoint(region, "public", at))
		}
		return object{"id": kind, "type": kind, "name": name, "endpoints": endpoints}
	}
	out := answer(201, object{"token": object{
		"expires_at": "2090-01-01T00:00:00.000000Z", "methods": in.Auth.Identity.Methods, "project": object{"id": ProjectID, "name": Project},
		"catalog": []any{service("identity", "keystone", "/v3"), service("compute", "nova", "/compute/v2.1"), service("network", "neutron", "/network"),
			service("image", "glance", "/image")},
	}})
	out.Header = map[string]string{"X-Subject-Token": s.issue()}
	return out
}

func (*Stack) keystone(status int, message string) fakecloud.Answer {
	return answer(status, object{"error": object{"code": status, "message": message, "title": http.StatusText(status)}})
}

// signInV2 is Rackspace's identity service.
func (s *Stack) signInV2(r *fakecloud.Request) fakecloud.Answer {
	var in struct {
		Auth struct {
			Key struct{ Username, APIKey string } `json:"RAX-KSKEY:apiKeyCredentials"`
		}
	}
	if err := json.Unmarshal(r.Body, &in); err != nil || in.Auth.Key.Username != User || in.Auth.Key.APIKey != s.password() {
		return s.Refuse(401, "", "Username or api key is invalid.")
	}
	service := func(kind, name, where string) any {
		return object{"type": kind, "name": name, "endpoints": []any{
			object{"region": "ORD", "tenantId": "123456", "publicURL": "http://ord.invalid/"},
			object{"region": RackspaceRegion, "tenantId": "123456", "publicURL": s.cloud.URL() + where},
		}}
	}
	return answer(200, object{"access": object{
		"token": object{"id": s.issue(), "expires": "2090-01-01T00:00:00.000Z", "tenant": object{"id": "123456", "name": "123456"}},
		"serviceCatalog": []any{service("compute", "cloudServers", "/old"), service("compute", "cloudServersOpenStack", "/compute/v2.1"),
			service("image", "cloudImages", "/image/v2")},
	}})
}
