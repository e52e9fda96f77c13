package clusters

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
)

// machineSpec is what a preview promises of a provider: its name, its type and the fields
// that decide what is built and where. How it is signed in to may change until then.
type machineSpec struct {
	loom.Base
	Type   string            `json:"providertype"`
	Fields map[string]string `json:"fields"`
}

// machineSpecOf reads the type of a provider for it; a type that is gone knows no field.
func machineSpecOf(ctx context.Context, q sqlx.ExtContext, p loom.Provider) (machineSpec, loom.PluginType, error) {
	t, err := store.ProviderType(ctx, q, p.Type)
	if err != nil && !isNotFound(err) {
		return machineSpec{}, t, err
	}
	return newMachineSpec(t, p), t, nil
}

func newMachineSpec(t loom.PluginType, p loom.Provider) machineSpec {
	b := machineSpec{Base: p.Base, Type: p.Type, Fields: t.Building(p.Fields)}
	b.Version = 0
	return b
}

// checkUnchanged returns *stale unless a provider builds what a preview promised.
func (b machineSpec) checkUnchanged(ctx context.Context, q sqlx.ExtContext, p loom.Provider) error {
	if p.Type == "" {
		return &stale{[]string{fmt.Sprintf("The provider “%s” is gone.", b.Name)}}
	}
	now, t, err := machineSpecOf(ctx, q, p)
	if err != nil {
		return err
	}
	if now.Type != b.Type {
		return &stale{[]string{fmt.Sprintf("The provider “%s” is of another type now.", b.Name)}}
	}
	var moved []string
	for _, name := range slices.Sorted(maps.Keys(now.Fields)) {
		if b.Fields[name] != now.Fields[name] {
			moved = append(moved, "“"+t.Word(name)+"”")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(b.Fields)) {
		if _, there := now.Fields[name]; !there {
			moved = append(moved, "“"+t.Word(name)+"”")
		}
	}
	if len(moved) == 0 {
		return nil
	}
	return &stale{[]string{fmt.Sprintf("The provider “%s” makes other machines now: %s changed.", b.Name, strings.Join(moved, ", "))}}
}

// currentProvider reads a provider as it is; one that is gone has nothing but its name.
func currentProvider(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, name string) (loom.Provider, error) {
	p, err := store.Provider(ctx, q, tenant, name)
	if isNotFound(err) {
		return loom.Provider{Base: loom.Base{Name: name}}, nil
	}
	return p, err
}

// readProvider gives the change of a stored preview its provider as it is now.
func (u *Clusters) readProvider(ctx context.Context, actor loom.Actor, c *change) error {
	if c.Kind == loom.ChangeCreate {
		present, err := currentProvider(ctx, u.q, actor.Tenant, c.Building.Name)
		c.Provider = withFields(present, c.Input.Create.ProviderFields)
		return err
	}
	cluster, err := store.ClusterByID(ctx, u.q, actor.Tenant, c.Cluster)
	c.Provider = cluster.Provider
	return err
}

// checkPermitted refuses a plan that makes machines with a provider that the tenant may not
// use. What works on machines that are there, and deletes them, is always permitted.
func checkPermitted(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, p loom.Provider, plan loom.Plan) error {
	if !makesMachines(plan) {
		return nil
	}
	may, err := store.Permits(ctx, q, tenant)
	if err != nil {
		return err
	}
	return may.Refusal("provider", p)
}

func makesMachines(plan loom.Plan) bool {
	return slices.ContainsFunc(plan.Tasks, func(t loom.PlanTask) bool { return t.Action == loom.ActionCreate })
}

// fieldKeyResource names a key of the tenant; with it, or a password, no pair is made.
const fieldKeyResource = "ssh_key_resource"

// providerFields is what a request's provider fields come to.
type providerFields struct {
	// open go into the cluster's copy of the provider, sealed among its secrets.
	open   map[string]any
	sealed map[string]loom.Secret
	// missing are the absent fields of each required set of user fields.
	missing []map[string]loom.FieldSchema
	errs    []loom.FieldError
	// incomplete says what administrators have still to set, "" for nothing.
	incomplete string
}

// maxFieldText bounds a field's text, in bytes.
const maxFieldText = 64 << 10

// takeFields sorts the given fields. Stored are the names of secrets the cluster
// has already; they count as present unless given ones replace them. Fields the
// type does not know, or does not let users set, are ignored; those that decide where
// sealed values of the provider are sent are mistakes.
func takeFields(t loom.PluginType, p loom.Provider, stored []string, given map[string]any) providerFields {
	out := providerFields{open: map[string]any{}, sealed: map[string]loom.Secret{}}
	user, admin := t.Parameters["user"], t.Parameters["admin"]
	settable := settableFields(t, p)
	for _, name := range slices.Sorted(maps.Keys(given)) {
		schema, ok := settable[name]
		value := given[name]
		if value == nil || value == "" {
			continue
		}
		if redirectsSecrets(t, p, name, value) {
			out.errs = append(out.errs, loom.FieldError{Field: "providerFields." + name,
				Message: "Leave it out: the provider’s own credentials would be sent to another address, or with other checks. Ask an administrator for a provider of this address."})
			continue
		}
		if !ok {
			continue
		}
		if n := len(loom.FieldText(value)); n > maxFieldText {
			out.errs = append(out.errs, loom.FieldError{Field: "providerFields." + name, Message: fmt.Sprintf("A value has at most %d bytes; this one has %d.", maxFieldText, n)})
			continue
		}
		if err := schema.CheckValue(value); err != "" {
			out.errs = append(out.errs, loom.FieldError{Field: "providerFields." + name, Message: err})
			continue
		}
		if !schema.IsSensitive() && loom.HasUserInfo(value) {
			out.errs = append(out.errs, loom.FieldError{Field: "providerFields." + name, Message: loom.NoUserInfo})
			continue
		}
		if schema.IsSensitive() {
			out.sealed[name] = loom.NewSecret(loom.FieldText(value))
		} else {
			out.open[name] = value
		}
	}
	present := map[string]any{}
	for name, value := range p.Fields {
		// A key with an empty text is common in providers and counts, for users.
		present[name] = true
		if schema, _ := t.Schema(name); schema.Type == "checkbox" {
			present[name] = value
		}
	}
	for _, name := range p.Sealed {
		present[name] = true
	}
	if len(out.sealed) == 0 {
		for _, name := range stored {
			present[name] = true
		}
	}
	for name := range out.open {
		present[name] = true
	}
	for name := range out.sealed {
		present[name] = true
	}
	out.missing = user.Missing(present)
	for name, value := range p.Fields {
		if _, given := out.open[name]; !given && value == "" {
			delete(present, name) // for administrators an empty text is no value
		}
	}
	if absent := admin.Missing(present); len(absent) > 0 {
		out.incomplete = fmt.Sprintf("The provider “%s” is incomplete: an administrator must still set %s.", p.Name, labels(absent[0]))
	}
	return out
}

// redirectsSecrets reports whether a value of a field would send what the provider seals elsewhere.
func redirectsSecrets(t loom.PluginType, p loom.Provider, name string, value any) bool {
	after := withFields(p, map[string]any{name: value}).Fields
	return slices.ContainsFunc(p.Sealed, func(sealed string) bool { return len(t.Moved(sealed, p.Fields, after)) > 0 })
}

// settableFields are what a user may give: user fields, and admin fields with
// override that the provider does not fix, but for those that decide where sealed
// values of the provider are sent. The default of one is what the provider
// says, where it says something: that is what a cluster gets without it.
func settableFields(t loom.PluginType, p loom.Provider) map[string]loom.FieldSchema {
	fields := map[string]loom.FieldSchema{}
	for name, schema := range t.Parameters["admin"].Fields {
		if schema.Override && !slices.Contains(p.Fixed, name) {
			fields[name] = schema
		}
	}
	maps.Copy(fields, t.Parameters["user"].Fields)
	delete(fields, loom.FieldExposeCredentials)
	for _, sealed := range p.Sealed {
		schema, _ := t.Schema(sealed)
		for _, name := range schema.BoundTo {
			delete(fields, name)
		}
	}
	for name, schema := range fields {
		if own := p.Fields[name]; own != nil && own != "" && !schema.IsSensitive() {
			schema.Default = own
			fields[name] = schema
		}
	}
	return fields
}

// FixedField is a field that users may not give, although its type would let them,
// with the value that clusters get; "" where that is secret or there is none.
type FixedField struct{ Name, Label, Tip, Value string }

// fixedFields are the fixed ones of a provider, by name.
func fixedFields(t loom.PluginType, p loom.Provider) []FixedField {
	var fields []FixedField
	for _, name := range slices.Sorted(slices.Values(p.Fixed)) {
		schema, known := t.Parameters["admin"].Fields[name]
		if !known || !schema.Override {
			continue
		}
		f := FixedField{Name: name, Label: cmp.Or(schema.Label, name), Tip: schema.Tip}
		if !schema.IsSensitive() {
			f.Value = loom.FieldText(p.Fields[name])
			if _, set := p.Fields[name]; !set {
				f.Value = loom.FieldText(schema.Default)
			}
		}
		fields = append(fields, f)
	}
	return fields
}

// missingError is the answer to a request that lacks provider fields, nil when
// it lacks none.
func missingError(missing []map[string]loom.FieldSchema) error {
	if len(missing) == 0 {
		return nil
	}
	e := loom.NewError(loom.Invalid, "The provider needs more: %s.", labels(missing[0]))
	e.Missing = missing
	for _, name := range slices.Sorted(maps.Keys(missing[0])) {
		e.Fields = append(e.Fields, loom.FieldError{Field: "providerFields." + name, Message: "The provider needs this field."})
	}
	return e
}

func labels(fields map[string]loom.FieldSchema) string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		label := fields[name].Label
		if label == "" {
			label = name
		}
		out = append(out, "“"+label+"”")
	}
	return strings.Join(out, ", ")
}

// withFields is a copy of a provider with open fields laid over its own.
func withFields(p loom.Provider, open map[string]any) loom.Provider {
	fields := map[string]any{}
	maps.Copy(fields, p.Fields)
	maps.Copy(fields, open)
	p.Fields = fields
	return p
}

// takeProviderFields lays the given fields over what the cluster has. A provider type that is gone answers NotFound, as machines cannot be
// reached without its plugin.
func (u *Clusters) takeProviderFields(ctx context.Context, tx *sqlx.Tx, actor loom.Actor, cluster *loom.Cluster, given map[string]any) error {
	if errs := checkStorable("providerFields", given); len(errs) > 0 {
		return loom.InvalidFields(errs)
	}
	if cluster.Provider.Type == "" {
		return loom.ProviderGone(cluster.Provider.Name)
	}
	t, err := store.ProviderType(ctx, tx, cluster.Provider.Type)
	if err != nil {
		return err
	}
	entity := store.ClusterSecrets(cluster.ID)
	stored, err := store.Secrets(ctx, tx, actor.Tenant, entity)
	if err != nil {
		return err
	}
	fields := takeFields(t, cluster.Provider, sortedNames(stored), given)
	if err := loom.InvalidFields(fields.errs); err != nil {
		return err
	}
	if err := missingError(fields.missing); err != nil {
		return err
	}
	if len(fields.open) > 0 {
		cluster.Provider = withFields(cluster.Provider, fields.open)
		if err := store.AddProviderFields(ctx, tx, actor.Tenant, cluster.ID, fields.open); err != nil {
			return err
		}
	}
	if len(fields.sealed) == 0 {
		return nil
	}
	// Given secrets replace all earlier ones but the key pair of the cluster.
	for name := range stored {
		if name == loom.FieldPrivateKey || name == loom.FieldPublicKey {
			continue
		}
		if err := store.DeleteSecrets(ctx, tx, actor.Tenant, entity, name); err != nil {
			return err
		}
	}
	sealed, err := u.seal(actor.Tenant, cluster.ID, fields.sealed)
	if err != nil {
		return err
	}
	return store.PutSecrets(ctx, tx, actor.Tenant, entity, actor.User, sealed)
}
