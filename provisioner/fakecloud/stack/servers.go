package stack

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"time"

	"loom/provisioner/fakecloud"
)

// Wanted is what a server was asked for with.
type Wanted struct {
	Name           string
	ImageRef       string
	FlavorRef      string
	KeyName        string              `json:"key_name"`
	SecurityGroups []map[string]string `json:"security_groups"`
	Networks       []map[string]string
	Zone           string `json:"availability_zone"`
	UserData       string `json:"user_data"`
	Metadata       map[string]string
	ConfigDrive    *bool `json:"config_drive"`
	AdminPass      string
	Disks          []WantedDisk `json:"block_device_mapping_v2"`
}

// WantedDisk is a disk of a server; the one with boot index 0 is booted from.
type WantedDisk struct {
	Source      string `json:"source_type"`
	UUID        string
	Destination string `json:"destination_type"`
	Boot        int    `json:"boot_index"`
	Size        int    `json:"volume_size"`
	Temporary   bool   `json:"delete_on_termination"`
}

// ImageSize is the least size of a volume that is made of the image, in GB.
const ImageSize = 3

// WantedBy reads the body of a call of Create.
func WantedBy(body string) (Wanted, error) {
	var in struct{ Server Wanted }
	err := json.Unmarshal([]byte(body), &in)
	return in.Server, err
}

// GeneratedPassword is what Nova makes up where none is asked for.
const GeneratedPassword = "nova-m4de-this"

func (s *Stack) create(r *fakecloud.Request) fakecloud.Answer {
	in, err := WantedBy(string(r.Body))
	if err != nil {
		return s.Refuse(400, "", "Malformed request body")
	}
	if message := s.check(in); message != "" {
		return s.Refuse(400, "", message)
	}
	m, err := s.cloud.Make(r.Context(), fakecloud.Machine{ID: "3c9e5b60-2f7f-4c38-8b1c-%012d", Key: in.Metadata["loom-key"], Name: in.Name,
		Flavor: in.FlavorRef, Image: in.ImageRef, Tags: in.Metadata, Request: in})
	if err != nil {
		return s.Refuse(500, "", err.Error())
	}
	password := in.AdminPass
	if password == "" {
		password = GeneratedPassword
	}
	return answer(202, object{"server": object{"id": m.ID, "links": []any{}, "OS-DCF:diskConfig": "MANUAL", "adminPass": password}})
}

// check gives Nova's refusal, "" for none.
func (s *Stack) check(in Wanted) string {
	_, badData := base64.StdEncoding.DecodeString(in.UserData)
	switch {
	case in.Name == "" || len(in.Name) > 255:
		return "Invalid input for field/attribute name."
	case in.FlavorRef != Flavor:
		return "Flavor " + in.FlavorRef + " could not be found."
	case len(in.Disks) == 0 && in.ImageRef != Image:
		return "Invalid imageRef provided."
	case len(in.Disks) > 0 && in.Disks[0] != WantedDisk{Source: "image", UUID: Image, Destination: "volume", Size: in.Disks[0].Size, Temporary: in.Disks[0].Temporary}:
		return "Block Device Mapping is Invalid."
	case len(in.Disks) > 0 && (len(in.Disks) > 1 || in.ImageRef != ""):
		return "Block Device Mapping is Invalid: Boot sequence for the instance and image/block device mapping combination is not valid."
	case len(in.Disks) > 0 && in.Disks[0].Size < ImageSize:
		return "Volume is smaller than the minimum size specified in image metadata."
	case in.KeyName != "" && in.KeyName != KeyPair:
		return "Invalid key_name provided."
	case in.Zone != "" && in.Zone != Zone:
		return "The requested availability zone is not available"
	case badData != nil || len(in.UserData) > 65535:
		return "Invalid input for field/attribute user_data."
	case s.rackspace && (len(in.SecurityGroups) > 0 || in.Zone != ""):
		return "Security groups and zones are not there."
	}
	for _, g := range in.SecurityGroups {
		if g["name"] != Group {
			return fmt.Sprintf("Security group %s not found for project %s.", g["name"], ProjectID)
		}
	}
	for _, n := range in.Networks {
		if networkNames[n["uuid"]] == "" {
			return fmt.Sprintf("Network %s could not be found.", n["uuid"])
		}
	}
	for _, value := range in.Metadata {
		if len(value) > 255 {
			return "Metadata values are too long."
		}
	}
	return ""
}

// list returns a page of the servers whose name fits.
func (s *Stack) list(r *fakecloud.Request) fakecloud.Answer {
	query := r.URL.Query()
	name, err := regexp.Compile(query.Get("name"))
	if err != nil {
		return s.Refuse(400, "", "Invalid filter.")
	}
	found := s.cloud.List(func(m fakecloud.Machine) bool { return m.State != fakecloud.Gone && name.MatchString(m.Name) })
	if marker := query.Get("marker"); marker != "" {
		at := slices.IndexFunc(found, func(m fakecloud.Machine) bool { return m.ID == marker })
		if at < 0 {
			return s.Refuse(400, "", "marker ["+marker+"] not found")
		}
		found = found[at+1:]
	}
	out := object{}
	if s.PageSize > 0 && len(found) > s.PageSize {
		found = found[:s.PageSize]
		out["servers_links"] = []any{object{"rel": "next", "href": "http://elsewhere.invalid/servers/detail?marker=" + found[len(found)-1].ID}}
	}
	servers := []any{}
	for _, m := range found {
		servers = append(servers, s.server(m))
	}
	out["servers"] = servers
	return answer(200, out)
}

func (s *Stack) get(id string) fakecloud.Answer {
	m, ok := s.cloud.Look(id)
	if !ok || m.State == fakecloud.Gone {
		return s.Refuse(404, "", "Instance "+id+" could not be found.")
	}
	out := s.server(m)
	if m.State == fakecloud.Running && len(s.Connect) > 0 {
		s.mu.Lock()
		metadata := object{"rackconnect_automation_status": s.Connect[0]}
		for key, value := range m.Tags {
			metadata[key] = value
		}
		out["metadata"] = metadata
		if len(s.Connect) > 1 {
			s.Connect = s.Connect[1:]
		}
		s.mu.Unlock()
	}
	return answer(200, object{"server": out})
}

// act starts a server that is off, or resets it by force.
func (s *Stack) act(id, body string) fakecloud.Answer {
	did, known := false, slices.ContainsFunc(s.cloud.Machines(), func(m fakecloud.Machine) bool { return m.ID == id && m.State != fakecloud.Gone })
	switch body {
	case `{"os-start":null}`:
		did = s.cloud.Start(id)
	case `{"reboot":{"type":"HARD"}}`:
		did = s.cloud.Reset(id)
	default:
		return s.Refuse(400, "", "There is no such action.")
	}
	switch {
	case !known:
		return s.Refuse(404, "", "Instance "+id+" could not be found.")
	case !did:
		return s.Refuse(409, "", "Cannot do that while the instance is in this vm_state")
	}
	return fakecloud.Answer{Status: 202}
}

func (s *Stack) server(m fakecloud.Machine) object {
	status := map[fakecloud.State]string{fakecloud.Pending: "BUILD", fakecloud.Running: "ACTIVE", fakecloud.Broken: "ERROR", fakecloud.Stopped: "SHUTOFF", fakecloud.Leaving: "ACTIVE"}
	out := object{"id": m.ID, "name": m.Name, "status": status[m.State], "metadata": m.Tags, "created": m.Made.Format(time.RFC3339), "updated": m.Made.Format(time.RFC3339),
		"flavor": object{"id": m.Flavor}, "image": object{"id": m.Image}, "accessIPv4": "", "accessIPv6": "", "addresses": s.addresses(m), "config_drive": "",
		"OS-EXT-STS:task_state": nil}
	if m.State == fakecloud.Leaving {
		out["OS-EXT-STS:task_state"] = "deleting"
	}
	if m.State == fakecloud.Broken {
		out["fault"] = object{"code": 500, "created": m.Made.Format(time.RFC3339), "message": m.Reason}
	}
	if m.Image == "" {
		out["image"] = "" // it booted from a volume
	}
	if s.rackspace && m.Backing.Public != "" {
		out["accessIPv4"] = m.Backing.Public
	}
	return out
}

func entry(ip, kind string) object {
	return object{"addr": ip, "version": 4, "OS-EXT-IPS:type": kind, "OS-EXT-IPS-MAC:mac_addr": "fa:16:3e:00:00:01"}
}

// addresses returns those of the networks asked for; without any, those of the
// networks public and private.
func (s *Stack) addresses(m fakecloud.Machine) object {
	if m.Backing.Private == "" && m.Backing.Public == "" {
		return object{}
	}
	in, _ := m.Request.(Wanted)
	out := object{}
	for n, net := range in.Networks {
		ip := m.Backing.Private
		if n > 0 {
			ip = fmt.Sprintf("10.%d.0.%d", n, m.Number)
		}
		out[networkNames[net["uuid"]]] = []any{entry(ip, "fixed")}
	}
	if len(in.Networks) > 0 && s.Hidden {
		return s.withFloat(m, out, networkNames[in.Networks[0]["uuid"]])
	}
	if len(in.Networks) > 0 {
		return out
	}
	out["private"] = []any{object{"addr": "fd00::1", "version": 6, "OS-EXT-IPS:type": "fixed"}, entry(m.Backing.Private, "fixed")}
	if s.Hidden {
		return s.withFloat(m, out, "private")
	}
	out["public"] = []any{object{"addr": "2001:db8::1", "version": 6, "OS-EXT-IPS:type": "fixed"}, entry(m.Backing.Public, "fixed")}
	return out
}

// withFloat adds the floating address of a machine.
func (s *Stack) withFloat(m fakecloud.Machine, out object, name string) object {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.floats {
		if f.Port == portOf(m) {
			list, _ := out[name].([]any)
			out[name] = append(list, entry(f.IP, "floating"))
		}
	}
	return out
}
