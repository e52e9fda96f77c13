package adminview

import "loom/views/ui"

// FieldTemplate is the name of the choice of a template for the order of a
// service's actions.
const FieldTemplate = "template"

// OrderID is the id of the section that says where the actions of a service fall.
const OrderID = "order"

// OrderModel says where the actions of a service fall while a cluster of a
// template is made.
type OrderModel struct {
	Service string
	// Action is where the choice is sent, by GET.
	Action    string
	Templates []ui.Option
	Result    OrderResult
}

// OrderResult is the answer for one template. Zero is none yet.
type OrderResult struct {
	Template string
	// Notes tell how the plan came about: the size, what was added.
	Notes []string
	// Problem says why there is no plan, Reasons in detail.
	Problem string
	Reasons []string
	// Lost are missing services for which there is no plan.
	Lost []LostService
	Rows []OrderRow
}

// OrderRow is a stage of the plan.
type OrderRow struct {
	Stage string
	// Own are the service's actions, Others what may run at the same time.
	Own, Others []string
	// More counts others that are not listed.
	More int
}
