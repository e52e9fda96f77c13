package wire

import (
	"time"

	"loom/app/account"
	"loom/app/lenient"
	"loom/app/loom"
)

// ReadToken reads a request for a token. Members that there are not are refused: a
// slip in “expires” would make a token that lives as long as any may. Invalid.
func ReadToken(body []byte) (account.NewToken, error) {
	o, err := lenient.Read(body)
	if err != nil {
		return account.NewToken{}, err
	}
	o.Only(lenient.Names[TokenCreate]()...)
	in := account.NewToken{Name: o.Text("name")}
	for _, scope := range o.Texts("scopes") {
		in.Scopes = append(in.Scopes, loom.Scope(scope))
	}
	if millis := o.Int64Ptr("expires"); millis != nil {
		expires := time.UnixMilli(*millis)
		in.Expires = &expires
	}
	return in, o.Err()
}

// ReadUser reads a request for a user. Invalid.
func ReadUser(body []byte) (account.UserInput, error) {
	o, err := lenient.Read(body)
	if err != nil {
		return account.UserInput{}, err
	}
	o.Only(lenient.Names[UserCreate]()...)
	in := account.UserInput{
		ID: loom.UserID(o.Text("id")), Role: loom.Role(o.Text("role")), DisplayName: o.Text("displayName"), Email: o.Text("email"),
		Password: loom.NewSecret(o.Text("password")), SSHKeys: o.Texts("sshKeys"),
	}
	if o.Has("password") && in.Password.IsZero() {
		o.Fail("password", "This is empty; leave it out and a password is generated.")
	}
	if o.Has("role") && in.Role == "" {
		o.Fail("role", "The role is “user” or “admin”.")
	}
	return in, o.Err()
}

// ReadUserChange reads a change of a user: what is absent stays, null clears what
// a user need not have. Invalid.
func ReadUserChange(body []byte) (account.UserChange, error) {
	o, err := lenient.Read(body)
	if err != nil {
		return account.UserChange{}, err
	}
	o.Only(lenient.Names[UserEdit]()...)
	in := account.UserChange{SelfInput: account.SelfInput{DisplayName: cleared(o, "displayName"), Email: cleared(o, "email")}}
	if o.Has("sshKeys") || o.Null("sshKeys") {
		in.SSHKeys = o.Texts("sshKeys") // empty for null
	}
	if text := needed(o, "role"); text != nil {
		role := loom.Role(*text)
		in.Role = &role
	}
	if o.Null("disabled") {
		o.Fail("disabled", "This is null; it must be true or false.")
	}
	in.Disabled = o.BoolPtr("disabled")
	in.EndTokens = o.Bool("endTokens")
	in.Password, in.OldPassword = secretText(o, "password"), secretText(o, "oldPassword")
	return in, o.Err()
}

// cleared gives the text of a field, "" for an explicit null, nil when absent.
func cleared(o *lenient.Object, name string) *string {
	if o.Null(name) {
		return new(string)
	}
	return o.TextPtr(name)
}

// needed gives the text of a field that cannot be cleared, nil when absent.
func needed(o *lenient.Object, name string) *string {
	if o.Null(name) {
		o.Fail(name, "This is null. Omit the field to keep its value.")
	}
	return o.TextPtr(name)
}

func secretText(o *lenient.Object, name string) *loom.Secret {
	text := needed(o, name)
	if text == nil {
		return nil
	}
	s := loom.NewSecret(*text)
	return &s
}

// ReadSettings reads a change of a tenant's settings: what is
// absent stays, and unknown members are refused. Invalid.
func ReadSettings(body []byte) (account.SettingsChange, error) {
	o, err := lenient.Read(body)
	if err != nil {
		return account.SettingsChange{}, err
	}
	o.Only(lenient.Names[SettingsEdit]()...)
	for _, name := range []string{"leaseReminderHours", "leaseGraceHours", "requireLease", "automaticRepairs", "repairsPerDay", "localSignIn"} {
		if o.Null(name) {
			o.Fail(name, "This is null. Omit the field to keep its value.")
		}
	}
	in := account.SettingsChange{
		LeaseGraceHours: o.IntPtr("leaseGraceHours"), MaxTokenDays: o.IntPtr("maxTokenDays"), EndlessTokens: o.Null("maxTokenDays"),
		RequireLease: o.BoolPtr("requireLease"), AutomaticRepairs: o.BoolPtr("automaticRepairs"), RepairsPerDay: o.IntPtr("repairsPerDay"), LocalSignIn: o.TextPtr("localSignIn"),
	}
	if o.Has("leaseReminderHours") {
		in.LeaseReminderHours = o.Ints("leaseReminderHours")
	}
	return in, o.Err()
}

// ReadProfile reads a profile: any JSON object, kept as it was written. Invalid.
func ReadProfile(body []byte) (map[string]any, error) {
	value, err := lenient.Value(body)
	if err != nil {
		return nil, err
	}
	profile, ok := value.(map[string]any)
	if !ok {
		return nil, loom.NewError(loom.Invalid, "A profile is a JSON object.")
	}
	return profile, nil
}

// ReadTenant reads a request that makes or changes a tenant: {"tenant": {...},
// "bootstrap": bool}. Members of the tenant that there are not are refused, but for
// the id that older clients send. Invalid.
func ReadTenant(body []byte) (account.TenantInput, error) {
	o, err := lenient.Read(body)
	if err != nil {
		return account.TenantInput{}, err
	}
	if !o.Has("tenant") {
		o.Fail("tenant", "The body is an object with the member “tenant” and, if wanted, “bootstrap”.")
		return account.TenantInput{}, o.Err()
	}
	in := readTenant(o.Object("tenant"))
	in.Bootstrap = o.Bool("bootstrap")
	return in, o.Err()
}

// ReadTenantFields is ReadTenant for the tenant alone. Invalid.
func ReadTenantFields(body []byte) (account.TenantInput, error) {
	t, err := lenient.Read(body)
	if err != nil {
		return account.TenantInput{}, err
	}
	return readTenant(t), t.Err()
}

func readTenant(t *lenient.Object) account.TenantInput {
	t.Ignore("id")
	t.Only(lenient.Names[TenantFields]()...)
	in := account.TenantInput{
		Name: t.Text("name"), Description: t.TextPtr("description"), Workers: t.IntPtr("workers"), WorkersFrom: t.Text("workersFrom"),
		MaxClusters: t.IntPtr("maxClusters"), MaxNodes: t.IntPtr("maxNodes"),
		PrivateNetworks: t.BoolPtr("privateNetworks"), InstanceRoles: t.BoolPtr("instanceRoles"),
	}
	if t.Has("providerTypesOff") && !t.Null("providerTypesOff") {
		off := t.Texts("providerTypesOff")
		in.TypesOff = &off
	}
	return in
}
