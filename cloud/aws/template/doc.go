// SPDX-License-Identifier: Apache-2.0

// Package template makes EC2 launch templates: everything about a machine but
// its instance type, subnet and price.
//
// A template is named after a hash of all that is in it, so equal launches share
// one, it is never changed, and a new controller finds those of the one before.
// What is not used for a minute is deleted; the next launch that needs it makes
// it again.
//
// One launch may need several templates, as what nodes are told depends on the
// type: its image, how many pods it takes, what is reserved. A capacity
// reservation is named in the template too.
//
// At most one call to make or delete a template of the same name is under way.
// Others that want it wait for the outcome, which is theirs too.
package template
