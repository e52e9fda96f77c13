// Package gce is the Google Compute Engine of fake clouds: the calls of its API that
// Loom makes, and the token endpoint of a service account with a made-up key. It
// checks signatures and tokens, and remembers request ids.
package gce

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"

	"loom/provisioner/fakecloud"
)

// What the project has.
const (
	Project = "lab-project-7"
	Zone    = "us-central1-a"
	Size    = "e2-small"
	// Image of the project, ImageSize its size in GB; PublicImage is one of Google's.
	Image       = "golden"
	ImageSize   = 12
	PublicImage = "debian-12-bookworm-v20240110"
	Network     = "default"
	Subnetwork  = "lab-net"
)

// Operations.
const (
	Token      = "POST /token"
	Insert     = "POST /compute/v1/projects/{project}/zones/{zone}/instances"
	List       = "GET /compute/v1/projects/{project}/zones/{zone}/instances"
	ListAll    = "GET /compute/v1/projects/{project}/aggregated/instances"
	Get        = "GET /compute/v1/projects/{project}/zones/{zone}/instances/{name}"
	Delete     = "DELETE /compute/v1/projects/{project}/zones/{zone}/instances/{name}"
	Wait       = "POST /compute/v1/projects/{project}/zones/{zone}/operations/{name}/wait"
	ListDisks  = "GET /compute/v1/projects/{project}/zones/{zone}/disks"
	GetDisk    = "GET /compute/v1/projects/{project}/zones/{zone}/disks/{name}"
	DeleteDisk = "DELETE /compute/v1/projects/{project}/zones/{zone}/disks/{name}"
	GetImage   = "GET /compute/v1/projects/{project}/global/images/{name}"

	getFamily     = "GET /compute/v1/projects/{project}/global/images/family/{name}"
	getSize       = "GET /compute/v1/projects/{project}/zones/{zone}/machineTypes/{name}"
	listZones     = "GET /compute/v1/projects/{project}/zones"
	getZone       = "GET /compute/v1/projects/{project}/zones/{zone}"
	listSizes     = "GET /compute/v1/projects/{project}/zones/{zone}/machineTypes"
	listImages    = "GET /compute/v1/projects/{project}/global/images"
	getNetwork    = "GET /compute/v1/projects/{project}/global/networks/{name}"
	getSubnetwork = "GET /compute/v1/projects/{project}/regions/{region}/subnetworks/{name}"
)

// GCE is the dialect.
type GCE struct {
	cloud   *fakecloud.Cloud
	rotated atomic.Bool
	mux     *http.ServeMux
	// PageSize is the most that a listing gives at once, 0 for all.
	PageSize int
	// Unreachable zones make lists of all zones incomplete.
	Unreachable bool

	mu sync.Mutex
	// failures of operations to come, and whether disks outlive their instances.
	failures  []Failure
	keepDisks bool
	requests  map[string]operation
	done      map[string]operation
	disks     map[string]*Disk
	tokens    map[string]bool
}

// Failure is how an operation ends that was taken.
type Failure struct{ Code, Message string }

type operation struct {
	name    string
	failure Failure
}

// New makes the dialect of a project with one zone, size, network and image.
func New() *GCE {
	g := &GCE{mux: http.NewServeMux(), requests: map[string]operation{}, done: map[string]operation{}, disks: map[string]*Disk{}, tokens: map[string]bool{}}
	for _, op := range []string{Token, Insert, List, ListAll, Get, Delete, Wait, ListDisks, GetDisk, DeleteDisk, GetImage,
		getFamily, getSize, getZone, listSizes, listImages, getNetwork, getSubnetwork} {
		g.mux.Handle(op, http.NotFoundHandler())
	}
	return g
}

// Attach tells the cloud.
func (g *GCE) Attach(c *fakecloud.Cloud) { g.cloud = c }

// FailNext makes the next request for an instance fail after it was taken.
func (g *GCE) FailNext(failures ...Failure) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.failures = append(g.failures, failures...)
}

// KeepDisks makes disks outlive their instances.
func (g *GCE) KeepDisks(keep bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.keepDisks = keep
}

// Operation is method and pattern.
func (g *GCE) Operation(r *fakecloud.Request) string {
	_, pattern := g.mux.Handler(r.Request)
	return pattern
}

// Allowed looks at the token. Those who ask for one prove who they are in Do.
func (g *GCE) Allowed(r *fakecloud.Request) *fakecloud.Answer {
	if r.URL.Path == "/token" {
		return nil
	}
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.tokens[token] {
		return nil
	}
	refused := g.Refuse(http.StatusUnauthorized, "", "")
	return &refused
}

// Refuse answers with a reason and a message.
func (g *GCE) Refuse(status int, code, message string) fakecloud.Answer {
	usual := map[int][2]string{
		400: {"invalid", "Invalid value"}, 401: {"authError", "Invalid Credentials"}, 403: {"forbidden", "Required 'compute.instances.create' permission"},
		404: {"notFound", "The resource was not found"}, 409: {"alreadyExists", "The resource already exists"},
		429: {"rateLimitExceeded", "Quota exceeded for quota group 'default'"}, 500: {"backendError", "Internal error"}, 503: {"backendError", "Backend Error"},
	}
	if code == "" {
		code = usual[status][0]
	}
	if message == "" {
		message = usual[status][1]
	}
	return answer(status, map[string]any{"error": map[string]any{"code": status, "message": message,
		"errors": []any{map[string]any{"domain": "global", "reason": code, "message": message}}}})
}

func answer(status int, body any) fakecloud.Answer {
	data, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	return fakecloud.Answer{Status: status, Type: "application/json; charset=UTF-8", Body: data}
}

// parts reads the variables of a pattern out of a path.
func parts(op, path string) map[string]string {
	_, pattern, _ := strings.Cut(op, " ")
	found, given := map[string]string{}, strings.Split(path, "/")
	for n, part := range strings.Split(pattern, "/") {
		if strings.HasPrefix(part, "{") {
			found[strings.Trim(part, "{}")] = given[n]
		}
	}
	return found
}

// Do carries a call out.
func (g *GCE) Do(op string, r *fakecloud.Request) fakecloud.Answer {
	if op == Token {
		return g.token(r)
	}
	of := parts(op, r.URL.Path)
	if op == getFamily {
		if of["project"] == "debian-cloud" && of["name"] == "debian-12" {
			return answer(200, map[string]any{"name": PublicImage, "family": "debian-12"})
		}
		return g.Refuse(404, "", "The resource 'projects/"+of["project"]+"/global/images/family/"+of["name"]+"' was not found")
	}
	if op == GetImage {
		return g.image(of["project"], of["name"])
	}
	switch {
	case of["project"] != Project:
		return g.Refuse(403, "forbidden", "Permission denied on resource project "+of["project"]+".")
	case of["zone"] != "" && of["zone"] != Zone:
		return g.Refuse(404, "", "The resource 'projects/"+Project+"/zones/"+of["zone"]+"' was not found")
	}
	switch op {
	case Insert:
		return g.insert(r)
	case Get:
		m, ok := g.cloud.Look(of["name"])
		if !ok || m.State == fakecloud.Gone {
			g.settle(of["name"])
			return g.missing("instances", of["name"])
		}
		return answer(200, g.instance(m))
	case Delete:
		return g.remove(of["name"])
	case Wait:
		return g.wait(of["name"])
	case List:
		return g.page(r, g.find(r))
	case ListAll:
		return g.listAll(r)
	case ListDisks, GetDisk, DeleteDisk:
		return g.doDisk(op, of["name"], r)
	case listZones:
		return g.page(r, []any{map[string]any{"name": Zone, "status": "UP"}, map[string]any{"name": "europe-west1-b", "status": "UP"}})
	case getZone:
		return answer(200, map[string]any{"name": Zone, "status": "UP"})
	case listSizes:
		return g.page(r, []any{map[string]any{"name": Size, "guestCpus": 2, "memoryMb": 2048}, map[string]any{"name": "n1-old", "deprecated": map[string]any{"state": "DEPRECATED"}}})
	case getSize:
		if of["name"] == Size {
			return answer(200, map[string]any{"name": Size, "description": "2 vCPU, 2 GB RAM"})
		}
		return g.missing("machineTypes", of["name"])
	case listImages:
		return g.page(r, []any{map[string]any{"name": Image, "diskSizeGb": fmt.Sprint(ImageSize)}})
	case getNetwork:
		if of["name"] == Network {
			return answer(200, map[string]any{"name": Network})
		}
	case getSubnetwork:
		if of["name"] == Subnetwork && of["region"] == "us-central1" {
			return answer(200, map[string]any{"name": Subnetwork})
		}
	}
	return g.missing("things", of["name"])
}

func (g *GCE) missing(kind, name string) fakecloud.Answer {
	return g.Refuse(404, "", fmt.Sprintf("The resource 'projects/%s/zones/%s/%s/%s' was not found", Project, Zone, kind, name))
}

func (g *GCE) image(project, name string) fakecloud.Answer {
	switch {
	case project == Project && name == Image:
		return answer(200, map[string]any{"name": Image, "diskSizeGb": fmt.Sprint(ImageSize)})
	case project == "debian-cloud" && name == PublicImage:
		return answer(200, map[string]any{"name": PublicImage, "diskSizeGb": "10"})
	case project == "centos-cloud":
		return g.Refuse(403, "forbidden", "Permission denied on resource project centos-cloud.")
	}
	return g.Refuse(404, "", "The resource 'projects/"+project+"/global/images/"+name+"' was not found")
}

var filterForm = regexp.MustCompile(`^labels\.([a-z-]+)(:\*| = "([^"]*)")$`)

// fits applies the filter of a listing.
func fits(r *fakecloud.Request, labels map[string]string) bool {
	text := r.URL.Query().Get("filter")
	if text == "" {
		return true
	}
	f := filterForm.FindStringSubmatch(text)
	if f == nil {
		return false
	}
	value, has := labels[f[1]]
	return has && (f[2] == ":*" || value == f[3])
}

func (g *GCE) find(r *fakecloud.Request) []any {
	found := []any{}
	for _, m := range g.cloud.List(func(m fakecloud.Machine) bool { return m.State != fakecloud.Gone && fits(r, m.Tags) }) {
		found = append(found, g.instance(m))
	}
	return found
}

// page returns one page of a list.
func (g *GCE) page(r *fakecloud.Request, items []any) fakecloud.Answer {
	items, next := g.cut(r, items)
	return answer(200, map[string]any{"items": items, "nextPageToken": next})
}

func (g *GCE) cut(r *fakecloud.Request, items []any) (page []any, next string) {
	begin := 0
	_, _ = fmt.Sscan(r.URL.Query().Get("pageToken"), &begin) // none on the first page
	begin = min(begin, len(items))
	end := len(items)
	if g.PageSize > 0 && begin+g.PageSize < end {
		end = begin + g.PageSize
		next = fmt.Sprint(end)
	}
	return items[begin:end], next
}

func (g *GCE) listAll(r *fakecloud.Request) fakecloud.Answer {
	items, next := g.cut(r, g.find(r))
	all := map[string]any{"items": map[string]any{
		"zones/" + Zone: map[string]any{"instances": items}, "zones/europe-west1-b": map[string]any{"warning": map[string]any{"code": "NO_RESULTS_ON_PAGE"}},
	}, "nextPageToken": next}
	if g.Unreachable {
		all["unreachables"] = []string{"projects/" + Project + "/zones/europe-west1-b"}
	}
	return answer(200, all)
}
