// SPDX-License-Identifier: Apache-2.0

// Package template makes EC2 launch templates: everything about a machine but
// its instance type, subnet and price.
//
// A template is named after a hash of its content. So equal launches share a
// template, a template is never changed, and a new controller finds the
// templates of the previous one. A template that is not used for a minute is
// deleted; the next launch that needs it creates it again.
//
// One launch can need several templates, because the user data depends on the
// type: its image, its number of pods, and its reserved resources. A template
// also names the capacity reservation.
//
// At most one call creates or deletes a template of the same name at a time.
// Other launches that need the template wait for the result of that call.
package template
