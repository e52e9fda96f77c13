package wire

import (
	"bytes"
	"math"
	"slices"
	"time"

	"loom/app/clusters"
	"loom/app/lenient"
	"loom/app/loom"
)

// Empty reports whether an optional body says nothing: absent, blank or null.
func Empty(body []byte) bool {
	text := bytes.TrimSpace(body)
	return len(text) == 0 || string(text) == "null"
}

// ReadDeprecation reads the message of a deprecated version, "" for none. Invalid.
func ReadDeprecation(body []byte) (string, error) {
	o, err := lenient.Read(body)
	if err != nil {
		return "", err
	}
	message := o.Text("message")
	if !o.Has("message") && o.Err() == nil {
		o.Fail("message", "Enter a message, or an empty one to undeprecate the version.")
	}
	return message, o.Err()
}

// ReadCreate reads a request for a cluster. Invalid when some of it
// cannot be read, then with what else is wrong with its shape; what reads well is for
// the use case to check.
func ReadCreate(body []byte) (loom.CreateInput, error) {
	o, err := lenient.Read(body)
	if err != nil {
		return loom.CreateInput{}, err
	}
	in := readCreate(o)
	return in, createErrors(in, o)
}

func readCreate(o *lenient.Object) loom.CreateInput {
	in := loom.CreateInput{
		Name: o.Text("name"), Template: o.Text("clusterTemplate"), TemplateVersion: o.Int("clusterTemplateVersion"), Machines: o.Int("numMachines"), Description: o.Text("description"),
		Provider: o.Text("provider"), ProviderFields: o.FreeObject("providerFields"), Services: o.Texts("services"),
		HardwareType: o.Text("hardwaretype"), ImageType: o.Text("imagetype"), LeaseMillis: loom.TemplateLease,
		DNSSuffix: o.Text("dnsSuffix"), Config: o.FreeObject("config"), ConfigPatch: o.FreeObject("configPatch"), OnFailure: o.Text("onFailure"),
	}
	if o.Has("initialLeaseDuration") {
		in.LeaseMillis = o.Int64("initialLeaseDuration")
	}
	if o.Has("labels") {
		in.Labels = o.TextMap("labels")
	}
	return in
}

// createErrors are what cannot be read, together with what is wrong with the rest as
// far as that can be told here: the use case, which knows the catalog and the largest
// size too and names all mistakes together, gets only requests that read well.
func createErrors(in loom.CreateInput, o *lenient.Object) error {
	errs := slices.Clone(o.Errors())
	if len(errs) == 0 {
		return nil
	}
	for _, e := range in.Validate(math.MaxInt32) {
		e.Field = o.Path(e.Field)
		if !slices.ContainsFunc(errs, func(f loom.FieldError) bool { return f.Field == e.Field }) {
			errs = append(errs, e)
		}
	}
	return loom.InvalidFields(errs)
}

func providerFields(o *lenient.Object) map[string]any {
	if !o.Has("providerFields") {
		return nil
	}
	fields := map[string]any{}
	for name, text := range o.TextMap("providerFields") {
		fields[name] = text
	}
	return fields
}

// ReadPreview reads a request for a preview. Invalid.
func ReadPreview(body []byte) (clusters.PreviewInput, error) {
	o, err := lenient.Read(body)
	if err != nil {
		return clusters.PreviewInput{}, err
	}
	in := clusters.PreviewInput{Kind: loom.ChangeKind(o.Text("kind"))}
	request := o.Object("request")
	if in.Kind == loom.ChangeCreate {
		if !o.Has("request") && o.Err() == nil {
			o.Fail("request", "Say what to create; the body of POST /v2/clusters goes here.")
			return in, o.Err()
		}
		in.Create = readCreate(request)
		return in, createErrors(in.Create, request)
	}
	if !slices.Contains(loom.PreviewKinds, in.Kind) {
		o.Fail("kind", "The kind of a preview is %s.", loom.Or(loom.PreviewKinds))
		return in, o.Err()
	}
	readPreview(o, request, &in)
	return in, o.Err()
}

// ReadApply reads what applies a preview. Invalid.
func ReadApply(body []byte, id loom.PreviewID) (clusters.ApplyInput, error) {
	o, err := lenient.Read(body)
	if err != nil {
		return clusters.ApplyInput{}, err
	}
	return clusters.ApplyInput{ID: id, Hash: o.Text("hash"), ProviderFields: o.FreeObject("providerFields")}, o.Err()
}

// ReadExpiry reads a change of the end of a lease: milliseconds, or an explicit
// null for never, which gives the zero time. Invalid.
func ReadExpiry(body []byte) (time.Time, error) {
	o, err := lenient.Read(body)
	if err != nil {
		return time.Time{}, err
	}
	if o.Null("expireTime") {
		return time.Time{}, nil
	}
	if !o.Has("expireTime") {
		o.Fail("expireTime", "Set the end of the lease in milliseconds since 1970, or null for never.")
	}
	return time.UnixMilli(o.Int64("expireTime")), o.Err()
}

// ReadEdit reads a change of what needs no operation; members that there are not
// are refused. Invalid.
func ReadEdit(body []byte) (clusters.EditInput, error) {
	o, err := lenient.Read(body)
	if err != nil {
		return clusters.EditInput{}, err
	}
	o.Only(lenient.Names[ClusterEdit]()...)
	in := clusters.EditInput{Description: o.TextPtr("description"), Protected: o.BoolPtr("protected")}
	if o.Has("labels") {
		in.Labels = o.TextMap("labels")
	}
	if o.Has("ownerId") {
		owner := loom.UserID(o.Text("ownerId"))
		in.Owner = &owner
	}
	if o.Null("repair") {
		in.Repair = &loom.RepairPolicy{}
	} else if o.Has("repair") {
		policy := o.Object("repair")
		policy.Only(lenient.Names[loom.RepairPolicy]()...)
		in.Repair = &loom.RepairPolicy{Service: loom.RepairChoice(policy.Text("service")), Stopped: loom.RepairChoice(policy.Text("stopped")), Gone: loom.RepairChoice(policy.Text("gone"))}
	}
	return in, o.Err()
}
