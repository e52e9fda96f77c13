package wire

import (
	"strconv"

	"loom/app/account"
	"loom/app/lenient"
	"loom/app/loom"
)

// Group is a set of users that roles are given to.
type Group struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Description string `json:"description"`
	Members     int    `json:"members" description:"How many users it has."`
	Bindings    int    `json:"bindings" description:"How many roles it has."`
	Created     int64  `json:"createTime" description:"Milliseconds since 1970."`
}

// NewGroup gives the wire form.
func NewGroup(g loom.Group) Group {
	return Group{ID: strconv.FormatInt(g.ID, 10), Name: g.Name, Description: g.Description, Members: g.Members, Bindings: g.Bindings, Created: Millis(g.Created)}
}

// ReadGroup reads a new group, or what to change of one. Invalid.
func ReadGroup(body []byte) (account.GroupInput, error) {
	o, err := lenient.Read(body)
	if err != nil {
		return account.GroupInput{}, err
	}
	o.Only(lenient.Names[GroupWrite]()...)
	return account.GroupInput{Name: needed(o, "name"), Description: cleared(o, "description")}, o.Err()
}

// ReadMember reads the user whom a form adds to a group. Invalid.
func ReadMember(body []byte) (loom.UserID, error) {
	o, err := lenient.Read(body)
	if err != nil {
		return "", err
	}
	user := loom.UserID(o.Text("user"))
	return user, o.Err()
}

// Member is a user in a group.
type Member struct {
	User        loom.UserID       `json:"user"`
	DisplayName string            `json:"displayName"`
	Source      loom.MemberSource `json:"source" description:"How the user became a member: hand, or rule: and the id of an identity provider."`
	Added       int64             `json:"addTime" description:"Milliseconds since 1970."`
	AddedBy     loom.UserID       `json:"addedBy"`
}

// NewMember gives the wire form.
func NewMember(m loom.Member) Member {
	return Member{User: m.User, DisplayName: m.DisplayName, Source: m.Source, Added: Millis(m.Added), AddedBy: m.AddedBy}
}

// Grant is a role where it holds.
type Grant struct {
	Role     loom.Role `json:"role"`
	Template string    `json:"template,omitempty" description:"Name of the template whose clusters it is about."`
	Cluster  string    `json:"cluster,omitempty" description:"Id of the cluster that it is about. Without template and cluster it holds in all of the tenant."`
}

func newGrant(g loom.Grant) Grant {
	out := Grant{Role: g.Role, Template: g.Template}
	if g.Cluster != 0 {
		out.Cluster = g.Cluster.String()
	}
	return out
}

// Binding gives a user or a group a role.
type Binding struct {
	ID        string      `json:"id"`
	User      loom.UserID `json:"user,omitempty"`
	Group     string      `json:"group,omitempty" description:"Id of the group."`
	GroupName string      `json:"groupName,omitempty"`
	Grant
	Created   int64       `json:"createTime" description:"Milliseconds since 1970."`
	CreatedBy loom.UserID `json:"createdBy"`
}

// NewBinding gives the wire form.
func NewBinding(b loom.Binding) Binding {
	out := Binding{ID: strconv.FormatInt(b.ID, 10), User: b.User, GroupName: b.GroupName, Grant: newGrant(b.Grant), Created: Millis(b.Created), CreatedBy: b.CreatedBy}
	if b.Group != 0 {
		out.Group = strconv.FormatInt(b.Group, 10)
	}
	return out
}

// ReadBinding reads a role to give. Invalid.
func ReadBinding(body []byte) (account.BindingInput, error) {
	o, err := lenient.Read(body)
	if err != nil {
		return account.BindingInput{}, err
	}
	o.Only(lenient.Names[BindingWrite]()...)
	in := readGiven(o)
	in.Template = o.Text("template")
	if text := o.Text("cluster"); text != "" {
		var ok bool
		if in.Cluster, ok = loom.ParseClusterID(text); !ok {
			o.Fail("cluster", "This is not the id of a cluster.")
		}
	}
	return in, o.Err()
}

// ReadShare reads a role on a cluster. Invalid.
func ReadShare(body []byte, cluster loom.ClusterID) (account.BindingInput, error) {
	o, err := lenient.Read(body)
	if err != nil {
		return account.BindingInput{}, err
	}
	o.Only(lenient.Names[ShareWrite]()...)
	in := readGiven(o)
	in.Cluster = cluster
	return in, o.Err()
}

func readGiven(o *lenient.Object) account.BindingInput {
	in := account.BindingInput{User: loom.UserID(o.Text("user")), Role: loom.Role(o.Text("role"))}
	if text := o.Text("group"); text != "" {
		var err error
		if in.Group, err = strconv.ParseInt(text, 10, 64); err != nil || in.Group <= 0 {
			o.Fail("group", "This is not the id of a group.")
		}
	}
	return in
}

// Access is who may do what with a cluster, besides the administrators of its tenant.
type Access struct {
	Owner    loom.UserID `json:"ownerId"`
	Bindings []Binding   `json:"bindings" description:"Those of the cluster, then those of its template, then those of the tenant."`
	MayShare bool        `json:"mayShare" description:"Whether one may share the cluster."`
}

// NewAccess gives the wire form.
func NewAccess(a account.Access) Access {
	out := Access{Owner: a.Owner, Bindings: make([]Binding, len(a.Bindings)), MayShare: a.MayShare}
	for i, b := range a.Bindings {
		out.Bindings[i] = NewBinding(b)
	}
	return out
}

// Unshared says what somebody keeps who lost a role on a cluster.
type Unshared struct {
	Revealed []string `json:"revealed" description:"Host names of nodes whose sign-in was revealed to those who lost the role."`
}
