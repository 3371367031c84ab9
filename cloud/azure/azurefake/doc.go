// SPDX-License-Identifier: Apache-2.0

// Package azurefake is a part of Azure in memory: what the provider asks Azure
// Resource Manager for, over HTTP, for the clients of the Azure SDK.
//
// A Cloud has one subscription with one AKS cluster. It serves the machines of the
// cluster's agent pools: they are created and deleted in operations that take
// time, they carry eTags, and what cannot change does not. Sizes can be sold out
// by zone and capacity type (Stock, Script), families of sizes have quotas
// (Quota), calls can be made to fail (Fail), lists can lag behind (ListLag), and
// virtual machines can vanish (Evict), also after a notice (Preempt). Time passes when the clock says so.
//
// Answers have the form that Azure documents. Requests that Azure would refuse are
// refused: without credentials, without the version of an API, with unknown sizes,
// or about agent pools that do not exist or are not for machines.
//
// Clients reach a Cloud without a network through Options. Handler serves it to
// others.
package azurefake
