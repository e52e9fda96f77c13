package ec2

import (
	"encoding/base64"
	"encoding/xml"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"loom/provisioner/fakecloud"
)

// run makes an instance. The same token gives the same one, whatever became of it.
func (e *EC2) run(r *fakecloud.Request, form url.Values) fakecloud.Answer {
	if refused := e.check(form); refused != nil {
		return *refused
	}
	token := form.Get("ClientToken")
	// Held until the instance is made, so that two calls at once make one.
	e.mu.Lock()
	defer e.mu.Unlock()
	if old, ok := e.tokens[token]; ok && token != "" {
		if old.parameters != parameters(form) {
			return e.refuse("IdempotentParameterMismatch", "The client token was used with other parameters.")
		}
		for _, m := range e.cloud.Machines() {
			if m.ID == old.id {
				return instances("RunInstancesResponse", "", []fakecloud.Machine{m}, true)
			}
		}
	}
	tags := map[string]string{}
	for n := 1; form.Has(fmt.Sprintf("TagSpecification.%d.ResourceType", n)); n++ {
		if form.Get(fmt.Sprintf("TagSpecification.%d.ResourceType", n)) != "instance" {
			continue
		}
		for k := 1; form.Has(fmt.Sprintf("TagSpecification.%d.Tag.%d.Key", n, k)); k++ {
			tags[form.Get(fmt.Sprintf("TagSpecification.%d.Tag.%d.Key", n, k))] = form.Get(fmt.Sprintf("TagSpecification.%d.Tag.%d.Value", n, k))
		}
	}
	m, err := e.cloud.Make(r.Context(), fakecloud.Machine{ID: "i-0%016x", Key: tags["loom-key"], Name: tags["Name"], Flavor: form.Get("InstanceType"),
		Image: form.Get("ImageId"), Tags: tags, Request: form})
	if err != nil {
		return e.Refuse(500, "InternalError", err.Error())
	}
	e.tokens[token] = remembered{m.ID, parameters(form)}
	m.State, m.Backing, m.Reason = fakecloud.Pending, fakecloud.Backing{}, "" // whatever becomes of it is seen later
	return instances("RunInstancesResponse", "", []fakecloud.Machine{m}, true)
}

// check refuses what EC2 would.
func (e *EC2) check(form url.Values) *fakecloud.Answer {
	refused := func(code, format string, args ...any) *fakecloud.Answer {
		a := e.refuse(code, format, args...)
		return &a
	}
	has := func(name string) bool { return form.Has(name) }
	groups := append(list(form, "SecurityGroupId"), list(form, "NetworkInterface.1.SecurityGroupId")...)
	subnet := form.Get("SubnetId") + form.Get("NetworkInterface.1.SubnetId")
	switch {
	case form.Get("MinCount") != "1" || form.Get("MaxCount") != "1":
		return refused("InvalidParameterValue", "The fake cloud makes one instance at a time.")
	case form.Get("ImageId") != Image && form.Get("ImageId") != StoreImage:
		return refused("InvalidAMIID.NotFound", "The image id '[%s]' does not exist", form.Get("ImageId"))
	case form.Get("InstanceType") != Size:
		return refused("InvalidParameterValue", "Invalid value '%s' for InstanceType.", form.Get("InstanceType"))
	case has("KeyName") && form.Get("KeyName") != KeyPair:
		return refused("InvalidKeyPair.NotFound", "The key pair '%s' does not exist", form.Get("KeyName"))
	case has("NetworkInterface.1.DeviceIndex") && (has("SubnetId") || has("SecurityGroupId.1") || has("SecurityGroup.1")):
		return refused("InvalidParameterCombination", "Network interfaces and an instance-level subnet ID or security groups may not be specified on the same request")
	case has("SecurityGroup.1") && subnet != "":
		return refused("InvalidParameterCombination", "The parameter groupName cannot be used with the parameter subnet")
	case subnet != "" && subnet != Subnet:
		return refused("InvalidSubnetID.NotFound", "The subnet ID '%s' does not exist", subnet)
	case form.Get("Placement.Tenancy") == "dedicated" && subnet == "":
		return refused("InvalidParameterCombination", "Dedicated instances need a VPC")
	case len(form.Get("ClientToken")) > 64:
		return refused("InvalidParameterValue", "The client token is too long")
	case has("BlockDeviceMapping.1.DeviceName"):
		if size, _ := strconv.Atoi(form.Get("BlockDeviceMapping.1.Ebs.VolumeSize")); size < ImageSize {
			return refused("InvalidBlockDeviceMapping", "Volume of size %dGB is smaller than snapshot, expect size >= %dGB", size, ImageSize)
		}
	}
	for _, id := range groups {
		if id != GroupID {
			return refused("InvalidGroup.NotFound", "The security group '%s' does not exist", id)
		}
	}
	for _, name := range list(form, "SecurityGroup") {
		if name != Group {
			return refused("InvalidGroup.NotFound", "The security group '%s' does not exist", name)
		}
	}
	return nil
}

func (e *EC2) describe(form url.Values) fakecloud.Answer {
	if ids := list(form, "InstanceId"); len(ids) > 0 {
		var found []fakecloud.Machine
		for _, id := range ids {
			if refused := e.malformed(id); refused != nil {
				return *refused
			}
			m, ok := e.cloud.Look(id)
			if !ok {
				return e.refuse("InvalidInstanceID.NotFound", "The instance ID '%s' does not exist", id)
			}
			found = append(found, m)
		}
		return instances("DescribeInstancesResponse", "", found, false)
	}
	found := e.cloud.List(func(m fakecloud.Machine) bool { return e.matches(form, m) })
	begin, _ := strconv.Atoi(form.Get("NextToken"))
	begin = min(begin, len(found))
	end, next := len(found), ""
	if e.PageSize > 0 && begin+e.PageSize < end {
		end = begin + e.PageSize
		next = strconv.Itoa(end)
	}
	return instances("DescribeInstancesResponse", next, found[begin:end], false)
}

// matches applies the filters.
func (e *EC2) matches(form url.Values, m fakecloud.Machine) bool {
	for n := 1; form.Has(fmt.Sprintf("Filter.%d.Name", n)); n++ {
		name, values := form.Get(fmt.Sprintf("Filter.%d.Name", n)), list(form, fmt.Sprintf("Filter.%d.Value", n))
		ok := false
		switch {
		case name == "client-token":
			ok = slices.Contains(values, tokenOf(m))
		case name == "instance-state-name":
			ok = slices.Contains(values, stateOf(m).Name)
		case name == "tag-key":
			ok = slices.ContainsFunc(values, func(v string) bool { _, has := m.Tags[v]; return has })
		case strings.HasPrefix(name, "tag:"):
			value, has := m.Tags[strings.TrimPrefix(name, "tag:")]
			ok = has && slices.Contains(values, value)
		}
		if !ok {
			return false
		}
	}
	return true
}

func tokenOf(m fakecloud.Machine) string {
	form, _ := m.Request.(url.Values)
	return form.Get("ClientToken")
}

func (e *EC2) malformed(id string) *fakecloud.Answer {
	if strings.HasPrefix(id, "i-") && len(id) == 19 {
		return nil
	}
	refused := e.refuse("InvalidInstanceID.Malformed", "Invalid id: \"%s\"", id)
	return &refused
}

func (e *EC2) terminate(form url.Values) fakecloud.Answer {
	var found []fakecloud.Machine
	for _, id := range list(form, "InstanceId") {
		if refused := e.malformed(id); refused != nil {
			return *refused
		}
		m, ok := e.cloud.Remove(id)
		if !ok {
			return e.refuse("InvalidInstanceID.NotFound", "The instance ID '%s' does not exist", id)
		}
		found = append(found, m)
	}
	var inner strings.Builder
	for _, m := range found {
		fmt.Fprintf(&inner, "<item><instanceId>%s</instanceId><currentState><code>32</code><name>shutting-down</name></currentState></item>", m.ID)
	}
	return answer(200, body{Name: "TerminateInstancesResponse", Inner: "<instancesSet>" + inner.String() + "</instancesSet>"})
}

// power starts instances that are stopped, or restarts those that run.
func (e *EC2) power(op string, form url.Values) fakecloud.Answer {
	for _, id := range list(form, "InstanceId") {
		if refused := e.malformed(id); refused != nil {
			return *refused
		}
		i := slices.IndexFunc(e.cloud.Machines(), func(m fakecloud.Machine) bool { return m.ID == id })
		if i < 0 {
			return e.refuse("InvalidInstanceID.NotFound", "The instance ID '%s' does not exist", id)
		}
		if op == "StartInstances" && !e.cloud.Start(id) || op == "RebootInstances" && !e.cloud.Reset(id) {
			return e.refuse("IncorrectInstanceState", "The instance '%s' is not in a state from which it can do that.", id)
		}
	}
	return answer(200, body{Name: op + "Response", Inner: "<return>true</return>"})
}

// console prints the host keys of the machine, if they are known, as cloud-init does.
func (e *EC2) console(form url.Values) fakecloud.Answer {
	text := "[    0.000000] Linux version 6.1\n"
	for _, m := range e.cloud.Machines() {
		if m.ID != form.Get("InstanceId") || len(m.Backing.HostKeys) == 0 {
			continue
		}
		text += "-----BEGIN SSH HOST KEY KEYS-----\n"
		for kind, key := range m.Backing.HostKeys {
			text += map[string]string{"ed25519": "ssh-ed25519", "ecdsa": "ecdsa-sha2-nistp256", "rsa": "ssh-rsa"}[kind] + " " + key + " root@ip-10-0-0-1\n"
		}
		text += "-----END SSH HOST KEY KEYS-----\n"
	}
	return answer(200, body{Name: "GetConsoleOutputResponse", Inner: "<instanceId>" + form.Get("InstanceId") + "</instanceId><output>" +
		base64.StdEncoding.EncodeToString([]byte(text)) + "</output>"})
}

type state struct {
	Code int    `xml:"code"`
	Name string `xml:"name"`
}

func stateOf(m fakecloud.Machine) state {
	switch m.State {
	case fakecloud.Pending:
		return state{0, "pending"}
	case fakecloud.Running:
		return state{16, "running"}
	case fakecloud.Stopped:
		return state{80, "stopped"}
	case fakecloud.Leaving:
		return state{32, "shutting-down"}
	case fakecloud.Broken, fakecloud.Gone:
	}
	return state{48, "terminated"}
}

type tag struct {
	Key   string `xml:"key"`
	Value string `xml:"value"`
}

type instance struct {
	ID       string `xml:"instanceId"`
	Image    string `xml:"imageId"`
	State    state  `xml:"instanceState"`
	Type     string `xml:"instanceType"`
	Launched string `xml:"launchTime"`
	Token    string `xml:"clientToken"`
	Name     string `xml:"dnsName,omitempty"`
	Public   string `xml:"ipAddress,omitempty"`
	Private  string `xml:"privateIpAddress,omitempty"`
	Reason   *struct {
		Code    string `xml:"code"`
		Message string `xml:"message"`
	} `xml:"stateReason"`
	Tags []tag `xml:"tagSet>item"`
}

// instances writes an answer with instances, each in a reservation of its own
// where they are described.
func instances(name, next string, machines []fakecloud.Machine, flat bool) fakecloud.Answer {
	var inner strings.Builder
	for _, m := range machines {
		i := instance{ID: m.ID, Image: m.Image, State: stateOf(m), Type: m.Flavor, Launched: m.Made.Format(time.RFC3339), Token: tokenOf(m),
			Public: m.Backing.Public, Private: m.Backing.Private}
		if i.Public != "" {
			i.Name = fmt.Sprintf("ec2-%d.compute-1.amazonaws.example", m.Number)
		}
		if m.Reason != "" {
			i.Reason = &struct {
				Code    string `xml:"code"`
				Message string `xml:"message"`
			}{"Server.InternalError", m.Reason}
		}
		for key, value := range m.Tags {
			i.Tags = append(i.Tags, tag{key, value})
		}
		data, err := xml.Marshal(struct {
			XMLName xml.Name `xml:"item"`
			instance
		}{instance: i})
		if err != nil {
			panic(err)
		}
		if flat {
			inner.Write(data)
		} else {
			inner.WriteString("<item><reservationId>r-1</reservationId><instancesSet>" + string(data) + "</instancesSet></item>")
		}
	}
	set := "reservationSet"
	if flat {
		set = "instancesSet"
	}
	text := "<" + set + ">" + inner.String() + "</" + set + ">"
	if next != "" {
		text += "<nextToken>" + next + "</nextToken>"
	}
	return answer(200, body{Name: name, Inner: text})
}
