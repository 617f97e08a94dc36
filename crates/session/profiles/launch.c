/* Starts Node with the modules that `main.c` holds. A case starts one program and no other, and has
 * no path to a second; but it may read the machine's libraries, and Node lies among them. So what the
 * kernel does when it starts a dynamic program is done here once more: the loader is mapped, handed
 * its words, and entered. */
#define _GNU_SOURCE
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__x86_64__)
#define LOADER "/lib64/ld-linux-x86-64.so.2"
#define ENTER "mov %0, %%rsp\n\txor %%edx, %%edx\n\tjmp *%1"
#define USED "memory", "rdx"
#elif defined(__aarch64__)
#define LOADER "/lib/ld-linux-aarch64.so.1"
#define ENTER "mov sp, %0\n\tmov x0, #0\n\tbr %1"
#define USED "memory", "x0"
#endif

extern char **environ;

/* Reads a part of the loader to its place; what the file does not fill is zero. */
static int place(int file, char *base, const ElfW(Phdr) *part, size_t page) {
    size_t lead = part->p_vaddr % page;
    char *at = base + part->p_vaddr - lead;
    int allowed = (part->p_flags & PF_R ? PROT_READ : 0) | (part->p_flags & PF_W ? PROT_WRITE : 0) |
                  (part->p_flags & PF_X ? PROT_EXEC : 0);
    int kind = MAP_PRIVATE | MAP_FIXED;
    if (!(part->p_flags & PF_W))
        return mmap(at, part->p_filesz + lead, allowed, kind, file, part->p_offset - lead) == at;
    return mmap(at, part->p_memsz + lead, allowed, kind | MAP_ANONYMOUS, -1, 0) == at &&
           pread(file, at + lead, part->p_filesz, part->p_offset) == (ssize_t)part->p_filesz;
}

int main(int count, char **words) {
    char *first[] = {"node", "--argv0", "node", NODE, "-e", text, "--"};
    size_t page = sysconf(_SC_PAGESIZE), end = 0, start = sizeof first / sizeof *first;
    ElfW(Ehdr) head;
    ElfW(Phdr) parts[32];
    int file = open(LOADER, O_RDONLY);
    if (pread(file, &head, sizeof head, 0) != sizeof head || head.e_phnum > 32) return 70;
    ssize_t whole = head.e_phnum * sizeof *parts;
    if (pread(file, parts, whole, head.e_phoff) != whole) return 70;
    for (int at = 0; at < head.e_phnum; at++)
        if (parts[at].p_type == PT_LOAD) end = parts[at].p_vaddr + parts[at].p_memsz;
    char *base = mmap(NULL, end, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED) return 70;
    for (int at = 0; at < head.e_phnum; at++)
        if (parts[at].p_type == PT_LOAD && !place(file, base, &parts[at], page)) return 70;
    close(file);

    /* The number of words, the words, the environment, and what the kernel says of the machine. */
    size_t set = 0, said = 0;
    while (environ[set]) set++;
    ElfW(auxv_t) *vector = (ElfW(auxv_t) *)(environ + set + 1);
    while (vector[said].a_type) said++;
    size_t size = 1 + start + count + set + 1 + 2 * (said + 1);
    char **stack = __builtin_alloca_with_align(size * sizeof *stack, 128), **to = stack;
    *to++ = (char *)(start + count - 1);
    to = (char **)mempcpy(to, first, sizeof first);
    to = (char **)mempcpy(to, words + 1, count * sizeof *words);
    to = (char **)mempcpy(to, environ, (set + 1) * sizeof *environ);
    memcpy(to, vector, (said + 1) * sizeof *vector);
    for (vector = (ElfW(auxv_t) *)to; vector->a_type; vector++) {
        size_t *value = &vector->a_un.a_val;
        switch (vector->a_type) {
        case AT_BASE: *value = 0; break;
        case AT_PHDR: *value = (size_t)base + head.e_phoff; break;
        case AT_PHNUM: *value = head.e_phnum; break;
        case AT_ENTRY: *value = (size_t)base + head.e_entry; break;
        }
    }
    __asm__ volatile(ENTER : : "r"(stack), "r"(base + head.e_entry) : USED);
    __builtin_unreachable();
}
