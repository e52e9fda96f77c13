package clusterview

import (
	"strconv"

	"loom/app/loom"
	"loom/views/ui"
)

// AccessModel is the page of who may do what with a cluster.
type AccessModel struct {
	Cluster loom.ClusterID
	Owner   loom.UserID
	// Bindings are the roles besides that of the owner.
	Bindings []loom.Binding
	// Share is the form that gives a role, nil for who may not; HandOver the one for another owner.
	Share, HandOver *AccessForm
}

// AccessForm is a form of the page of access.
type AccessForm struct {
	Errors ui.FormErrors
	Fields []ui.FieldModel
}

// accessWho names whom a role is given to.
func accessWho(b loom.Binding) string {
	if b.User != "" {
		return string(b.User)
	}
	return "Group " + b.GroupName
}

// accessWhy says where a role holds.
func accessWhy(b loom.Binding) string {
	switch b.Place() {
	case loom.PlaceCluster:
		return "This cluster"
	case loom.PlaceTemplate:
		return "All clusters of " + b.Template
	}
	return "All of the tenant"
}

// RoleWords say what a role lets somebody do with a cluster.
var RoleWords = map[loom.Role]string{
	loom.RoleReader: "Reader: sees it", loom.RoleOperator: "Operator: sees and changes it", loom.RoleAdmin: "Admin: does everything, also delete and share",
}

func bindingText(b loom.Binding) string { return strconv.FormatInt(b.ID, 10) }
