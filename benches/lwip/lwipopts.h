/* lwIP as a peer: raw API, no system, IPv4, room for as much under way as the others have. BUFFER is set by build.sh. */

#define NO_SYS 1
#define SYS_LIGHTWEIGHT_PROT 0
#define LWIP_NETCONN 0
#define LWIP_SOCKET 0
#define LWIP_STATS 0
#define LWIP_NOASSERT 1
#define LWIP_UDP 0
#define LWIP_RAW 0

#define MEM_ALIGNMENT 8
#define MEM_SIZE (4 << 20)
#define PBUF_POOL_SIZE 4096
#define MEMP_NUM_PBUF 8192
#define MEMP_NUM_TCP_SEG 8192

#define TCP_MSS 1460
#define LWIP_WND_SCALE 1
#define TCP_RCV_SCALE 5
#define TCP_WND BUFFER
#define TCP_SND_BUF BUFFER
#define TCP_SND_QUEUELEN 4096
#define TCP_SNDLOWAT (32 << 10)

/* Sums as each interface says, by the faster of lwIP's routines in C on 64 bits. */
#define LWIP_CHECKSUM_CTRL_PER_NETIF 1
#define LWIP_CHKSUM_ALGORITHM 3

/* Two interfaces of one network in a process: the source tells which one it is. Only ends.c has them. */
#ifdef TWO_ENDS
struct netif;
struct netif *route_by_source(const void *source);
#define LWIP_HOOK_IP4_ROUTE_SRC(source, destination) route_by_source(source)
#endif
