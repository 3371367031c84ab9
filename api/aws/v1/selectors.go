// SPDX-License-Identifier: Apache-2.0

package v1

// SubnetSelectorTerm selects subnets. All tags must be there. Where ID is set,
// Tags is ignored.
type SubnetSelectorTerm struct {
	// Tags the subnet has; the value "*" stands for any.
	// +kubebuilder:validation:XValidation:rule="self.all(k, k != '' && self[k] != '')",message="empty tag keys or values aren't supported"
	// +kubebuilder:validation:MaxProperties=20
	// +optional
	Tags map[string]string `json:"tags,omitempty"`
	// ID of the subnet.
	// +kubebuilder:validation:Pattern=`subnet-[0-9a-z]+`
	// +optional
	ID string `json:"id,omitempty"`
}

// SecurityGroupSelectorTerm selects security groups. All that is given must
// hold. Where ID is set, the other fields are ignored.
type SecurityGroupSelectorTerm struct {
	// Tags the security group has; the value "*" stands for any.
	// +kubebuilder:validation:XValidation:rule="self.all(k, k != '' && self[k] != '')",message="empty tag keys or values aren't supported"
	// +kubebuilder:validation:MaxProperties=20
	// +optional
	Tags map[string]string `json:"tags,omitempty"`
	// ID of the security group.
	// +kubebuilder:validation:Pattern=`sg-[0-9a-z]+`
	// +optional
	ID string `json:"id,omitempty"`
	// Name of the security group, which is not its tag "Name".
	// +optional
	Name string `json:"name,omitempty"`
}

// CapacityReservationSelectorTerm selects capacity reservations. All that is
// given must hold. Where ID is set, the other fields are ignored.
type CapacityReservationSelectorTerm struct {
	// Tags the reservation has; the value "*" stands for any.
	// +kubebuilder:validation:XValidation:rule="self.all(k, k != '' && self[k] != '')",message="empty tag keys or values aren't supported"
	// +kubebuilder:validation:MaxProperties=20
	// +optional
	Tags map[string]string `json:"tags,omitempty"`
	// ID of the reservation.
	// +kubebuilder:validation:Pattern=`^cr-[0-9a-z]+$`
	// +optional
	ID string `json:"id,omitempty"`
	// OwnerID is the account that owns the reservation, for a shared reservation.
	// It needs another field.
	// +kubebuilder:validation:Pattern=`^[0-9]{12}$`
	// +optional
	OwnerID string `json:"ownerID,omitempty"`
	// InstanceMatchCriteria says whether any instance that fits uses the
	// reservation (open), or only those that name it (targeted).
	// +kubebuilder:validation:Enum=open;targeted
	// +optional
	InstanceMatchCriteria string `json:"instanceMatchCriteria,omitempty"`
}

// PlacementGroupSelector names a placement group.
//
// +kubebuilder:validation:XValidation:rule="has(self.name) || has(self.id)",message="expected at least one, got none, ['name', 'id']"
// +kubebuilder:validation:XValidation:rule="!(has(self.name) && has(self.id))",message="'name' and 'id' are mutually exclusive"
type PlacementGroupSelector struct {
	// Name of the placement group.
	// +kubebuilder:validation:MinLength=1
	// +optional
	Name string `json:"name,omitempty"`
	// ID of the placement group.
	// +kubebuilder:validation:Pattern=`^pg-[0-9a-z]+$`
	// +optional
	ID string `json:"id,omitempty"`
}

// AMISelectorTerm selects images. Alias takes precedence over ID, ID over
// SSMParameter, and SSMParameter over the other fields.
type AMISelectorTerm struct {
	// Alias is "family@version". It selects the images that AWS publishes for the
	// family and the cluster's version: al2, al2023, bottlerocket, windows2019,
	// windows2022, windows2025. The version latest is always the newest image. Any
	// other version is a release, such as al2023@v20240807. Windows supports only
	// latest. An alias must be the only term.
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-zA-Z0-9]+@.+$')",message="'alias' is improperly formatted, must match the format 'family@version'"
	// +kubebuilder:validation:XValidation:rule="self.find('^[^@]+') in ['al2', 'al2023', 'bottlerocket', 'windows2019', 'windows2022', 'windows2025']",message="family is not supported, must be one of the following: 'al2', 'al2023', 'bottlerocket', 'windows2019', 'windows2022', 'windows2025'"
	// +kubebuilder:validation:XValidation:rule="!(self.find('^[^@]+') in ['windows2019', 'windows2022', 'windows2025']) || self.find('@.*$') == '@latest'",message="windows families may only specify version 'latest'"
	// +kubebuilder:validation:MaxLength=30
	// +optional
	Alias string `json:"alias,omitempty"`
	// Tags the image has; the value "*" stands for any.
	// +kubebuilder:validation:XValidation:rule="self.all(k, k != '' && self[k] != '')",message="empty tag keys or values aren't supported"
	// +kubebuilder:validation:MaxProperties=20
	// +optional
	Tags map[string]string `json:"tags,omitempty"`
	// ID of the image.
	// +kubebuilder:validation:Pattern=`ami-[0-9a-z]+`
	// +optional
	ID string `json:"id,omitempty"`
	// Name of the image, which may contain EC2's wildcards * and ?. It is not the
	// tag "Name".
	// +optional
	Name string `json:"name,omitempty"`
	// Owner of the image: an account, self, amazon or aws-marketplace. If unset,
	// the owners self and amazon are selected by name, and all owners by tags
	// alone. It needs another field.
	// +optional
	Owner string `json:"owner,omitempty"`
	// SSMParameter is the name or the ARN of a parameter whose value is the ID of
	// the image.
	// +optional
	SSMParameter string `json:"ssmParameter,omitempty"`
}
