// Package ocean is the DigitalOcean of fake clouds: the calls of its API, version 2, that
// Loom makes.
package ocean

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"loom/provisioner/fakecloud"
)

// Names of what the account has.
const (
	Token = "dop_v1_0123456789abcdef"
	// NextToken is the access token after Rotate.
	NextToken = "dop_v1_fedcba9876543210"
	KeyName   = "lab"
	Region    = "nyc3"
	Size      = "s-1vcpu-1gb"
	Image     = "debian-12-x64"
	ImageID   = 7001
	VPC       = "5a4981aa-9653-4bd1-bef5-d6bff52042e4"
)

// Operations.
const (
	Create = "POST /v2/droplets"
	List   = "GET /v2/droplets"
	Get    = "GET /v2/droplets/{id}"
	Delete = "DELETE /v2/droplets/{id}"
	Keys   = "GET /v2/account/keys"
)

// keyID is the id of KeyName.
const keyID = 512190

const getImage = "GET /v2/images/{id}"

// Ocean is the dialect.
type Ocean struct {
	cloud   *fakecloud.Cloud
	rotated atomic.Bool
	// PageSize is the most that a listing gives at once, 0 for what is asked for.
	PageSize int
	// PublicKey of the key, as in authorized_keys.
	PublicKey string
	mux       *http.ServeMux
}

// New makes the dialect of an account with one key, region, size and image.
func New() *Ocean {
	o := &Ocean{mux: http.NewServeMux()}
	for _, op := range []string{Create, List, Get, Delete, Keys, "GET /v2/account", "GET /v2/regions", "GET /v2/sizes", "GET /v2/images", getImage, "GET /v2/vpcs/{id}"} {
		o.mux.Handle(op, http.NotFoundHandler())
	}
	return o
}

// Attach tells the cloud.
func (o *Ocean) Attach(c *fakecloud.Cloud) { o.cloud = c }

// Operation is method and pattern.
func (o *Ocean) Operation(r *fakecloud.Request) string {
	_, pattern := o.mux.Handler(r.Request)
	return pattern
}

// Rotate replaces the token by NextToken.
func (o *Ocean) Rotate() { o.rotated.Store(true) }

func (o *Ocean) token() string {
	if o.rotated.Load() {
		return NextToken
	}
	return Token
}

// Allowed looks at the token.
func (o *Ocean) Allowed(r *fakecloud.Request) *fakecloud.Answer {
	if r.Header.Get("Authorization") == "Bearer "+o.token() {
		return nil
	}
	refused := o.Refuse(http.StatusUnauthorized, "", "")
	return &refused
}

// Refuse answers with an id and a message.
func (o *Ocean) Refuse(status int, code, message string) fakecloud.Answer {
	ids := map[int][2]string{
		401: {"unauthorized", "Unable to authenticate you"}, 403: {"forbidden", "You are not authorized to perform this operation"},
		404: {"not_found", "The resource you were accessing could not be found."}, 422: {"unprocessable_entity", "The request cannot be carried out."},
		429: {"too_many_requests", "API Rate limit exceeded."}, 500: {"server_error", "Server was unable to give you a response."},
	}
	if code == "" {
		code = ids[status][0]
	}
	if message == "" {
		message = ids[status][1]
	}
	return answer(status, map[string]any{"id": code, "message": message, "request_id": "4d9d8375"})
}

func answer(status int, body any) fakecloud.Answer {
	data, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	return fakecloud.Answer{Status: status, Type: "application/json; charset=utf-8", Body: data}
}

// Do carries a call out.
func (o *Ocean) Do(op string, r *fakecloud.Request) fakecloud.Answer {
	id := strings.TrimPrefix(r.URL.Path, "/v2/droplets/")
	switch op {
	case Create:
		return o.create(r)
	case List:
		tag := r.URL.Query().Get("tag_name")
		found := o.cloud.List(func(m fakecloud.Machine) bool {
			return m.State != fakecloud.Gone && (tag == "" || slices.ContainsFunc(m.Words, func(w string) bool { return strings.EqualFold(w, tag) }))
		})
		var droplets []any
		for _, m := range found {
			droplets = append(droplets, droplet(m))
		}
		return o.page(r, "droplets", droplets)
	case Get:
		m, ok := o.cloud.Look(id)
		if !ok || m.State == fakecloud.Gone {
			return o.Refuse(404, "", "")
		}
		return answer(200, map[string]any{"droplet": droplet(m)})
	case Delete:
		if m, ok := o.cloud.Remove(id); !ok || m.State == fakecloud.Gone {
			return o.Refuse(404, "", "")
		}
		return fakecloud.Answer{Status: 204}
	case "GET /v2/account":
		return answer(200, map[string]any{"account": map[string]any{"status": "active", "droplet_limit": 25}})
	case Keys:
		return o.page(r, "ssh_keys", []any{map[string]any{"id": 1, "name": "other"}, map[string]any{"id": keyID, "name": KeyName, "public_key": o.PublicKey}})
	case "GET /v2/regions":
		return o.page(r, "regions", []any{region(Region, true), region("nyc2", false), region("ams3", true)})
	case "GET /v2/sizes":
		return o.page(r, "sizes", []any{
			map[string]any{"slug": Size, "memory": 1024, "vcpus": 1, "available": true, "regions": []string{Region}, "description": "Basic"},
			map[string]any{"slug": "s-8vcpu-16gb", "memory": 16384, "vcpus": 8, "available": true, "regions": []string{"ams3"}},
		})
	case "GET /v2/images":
		if r.URL.Query().Get("private") == "true" {
			return o.page(r, "images", []any{map[string]any{"id": ImageID, "name": "golden", "distribution": "Debian", "regions": []string{Region}}})
		}
		return o.page(r, "images", []any{map[string]any{"id": 1, "slug": Image, "name": "12 x64", "distribution": "Debian", "regions": []string{Region}}})
	case getImage:
		switch ref := strings.TrimPrefix(r.URL.Path, "/v2/images/"); ref {
		case Image, strconv.Itoa(ImageID):
			return answer(200, map[string]any{"image": map[string]any{"id": ImageID, "slug": Image, "name": "12 x64", "distribution": "Debian", "regions": []string{Region}}})
		case "market-elsewhere":
			return answer(200, map[string]any{"image": map[string]any{"id": 9, "slug": ref, "name": "App", "distribution": "Debian", "regions": []string{"ams3"}}})
		}
		return o.Refuse(404, "", "")
	case "GET /v2/vpcs/{id}":
		if !strings.HasSuffix(r.URL.Path, "/"+VPC) {
			return o.Refuse(404, "", "")
		}
		return answer(200, map[string]any{"vpc": map[string]any{"id": VPC}})
	}
	return o.Refuse(404, "", "")
}

func region(slug string, available bool) any {
	return map[string]any{"slug": slug, "name": slug, "available": available}
}

// page returns one page of a list and says whether more follow.
func (o *Ocean) page(r *fakecloud.Request, name string, items []any) fakecloud.Answer {
	number, _ := strconv.Atoi(r.URL.Query().Get("page"))
	size, _ := strconv.Atoi(r.URL.Query().Get("per_page"))
	if size == 0 {
		size = 20
	}
	if o.PageSize > 0 {
		size = min(size, o.PageSize)
	}
	number = max(number, 1)
	begin, end := min((number-1)*size, len(items)), min(number*size, len(items))
	pages := map[string]any{}
	if number > 1 {
		pages["prev"] = fmt.Sprintf("%s%s?page=%d", o.cloud.URL(), r.URL.Path, number-1)
	}
	if end < len(items) {
		pages["next"] = fmt.Sprintf("%s%s?page=%d", o.cloud.URL(), r.URL.Path, number+1)
		pages["last"] = fmt.Sprintf("%s%s?page=%d", o.cloud.URL(), r.URL.Path, (len(items)+size-1)/size)
	}
	return answer(200, map[string]any{name: append([]any{}, items[begin:end]...), "links": map[string]any{"pages": pages}, "meta": map[string]any{"total": len(items)}})
}

// Wanted is what a droplet was asked for with.
type Wanted struct {
	Name, Region, Size string
	Image              any
	SSHKeys            []any `json:"ssh_keys"`
	Tags               []string
	VPC                string `json:"vpc_uuid"`
	Monitoring         bool
}

func (o *Ocean) create(r *fakecloud.Request) fakecloud.Answer {
	var in Wanted
	if err := json.Unmarshal(r.Body, &in); err != nil {
		return o.Refuse(400, "bad_request", "The body is no JSON.")
	}
	key := ""
	for _, tag := range in.Tags {
		if strings.ContainsFunc(tag, func(c rune) bool {
			return !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune(":-_", c))
		}) || len(tag) > 255 {
			return o.Refuse(422, "", "Tag "+tag+" is invalid.")
		}
		if value, ok := strings.CutPrefix(tag, "loom-key-"); ok {
			key = value
		}
	}
	switch {
	case in.Name == "":
		return o.Refuse(422, "", "Name can't be blank.")
	case in.Region != Region:
		return o.Refuse(422, "", "Region is not available.")
	case in.Size != Size:
		return o.Refuse(422, "", "You specified an invalid size for Droplet creation.")
	case in.Image != Image && in.Image != float64(ImageID):
		return o.Refuse(422, "", "You specified an invalid image for Droplet creation.")
	case in.VPC != "" && in.VPC != VPC:
		return o.Refuse(422, "", "The VPC does not exist.")
	}
	for _, k := range in.SSHKeys {
		if k != float64(keyID) {
			return o.Refuse(422, "", fmt.Sprintf("%v are invalid key identifiers for Droplet creation.", k))
		}
	}
	m, err := o.cloud.Make(r.Context(), fakecloud.Machine{ID: "3164%04d", Key: key, Name: in.Name, Flavor: in.Size, Image: fmt.Sprint(in.Image), Words: in.Tags, Request: in})
	if err != nil {
		return o.Refuse(500, "", err.Error())
	}
	m.State, m.Backing = fakecloud.Pending, fakecloud.Backing{} // whatever becomes of it is seen later
	return answer(202, map[string]any{"droplet": droplet(m)})
}

func droplet(m fakecloud.Machine) any {
	status := map[fakecloud.State]string{fakecloud.Pending: "new", fakecloud.Running: "active", fakecloud.Broken: "off", fakecloud.Stopped: "off", fakecloud.Leaving: "archive", fakecloud.Gone: "archive"}
	id, _ := strconv.Atoi(m.ID)
	v4 := []any{}
	if m.Backing.Private != "" {
		v4 = append(v4, map[string]any{"ip_address": m.Backing.Private, "type": "private", "netmask": "255.255.0.0"})
	}
	if m.Backing.Public != "" {
		v4 = append(v4, map[string]any{"ip_address": m.Backing.Public, "type": "public", "netmask": "255.255.240.0"})
	}
	return map[string]any{"id": id, "name": m.Name, "status": status[m.State], "size_slug": m.Flavor, "image": map[string]any{"id": ImageID, "slug": m.Image}, "tags": append([]string{}, m.Words...),
		"created_at": m.Made.Format(time.RFC3339), "networks": map[string]any{"v4": v4, "v6": []any{}}, "volume_ids": []string{}}
}
